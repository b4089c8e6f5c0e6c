"""Attention layers: products of tensors with a softmax between them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.activation import chosen, softmax_over, without_masked
from nnbuild.frontend.keras_layers.base import Build, Call, LayerKind, Layers, WeightRule, Wire, wires
from nnbuild.frontend.keras_layers.products import by_kernel, multiplied, repeated, seen
from nnbuild.frontend.keras_weights import Child, WeightTree, parts
from nnbuild.model.graph import Array
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.known import Known
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.whole import Whole

PROJECTIONS = ("query_dense", "key_dense", "value_dense", "output_dense")
GATE = "gate_dense"
PLAIN = "Give it a query and a value of the shape [time, features]."


def _heads_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(children=parts(**_projections(config)))


def _grouped_weights(config: Config, layers: Layers) -> WeightTree:
    """The layer has only private names for its weights."""
    return WeightTree(children=tuple(Child(name, tree, f"_{name}") for name, tree in _projections(config).items()))


def _projections(config: Config) -> dict[str, WeightTree]:
    roles = ("kernel", "bias") if config.flag("use_bias", True) else ("kernel",)
    gate = (GATE,) if config.flag("use_gate", False) else ()
    return dict.fromkeys((*PROJECTIONS[:2], *gate, *PROJECTIONS[2:]), WeightTree(roles))


def _gated(call: Call, y: str, query: str, heads: int, size: int) -> str:
    """The result [heads, time, size] times a projection of the query."""
    if not call.config.flag("use_gate", False):
        return y
    gate = call.one(Transpose((1, 0, 2)), _projected(call, query, GATE, heads, size))
    return call.one(Binary("multiply"), y, call.one(Activation("sigmoid"), gate))


def _given(call: Call, *names: str) -> dict[str, str]:
    """The tensors of a call by argument name; positional ones come first."""
    found = dict(zip(names, (one for item in call.arguments for one in wires(item)), strict=False))
    for name in names:
        if isinstance(call.named.get(name), Wire):
            found[name] = call.named[name].name
    return found


def _sequences(call: Call, names: Iterator[str] | tuple[str, ...]) -> None:
    for name in names:
        if len(call.builder.shape(name)) != 2:
            raise call.config.error(f"it attends to tensors of the shape {call.builder.shape(name)}.", PLAIN)


def _projected(call: Call, x: str, role: str, heads: int, size: int, factor: float = 1.0) -> str:
    """[time, features] -> [time, heads, size]."""
    features = call.builder.shape(x)[-1]
    shape = (features, heads, size)

    def kernel() -> Array:
        return (call.values(f"{role}/kernel", shape) * np.float32(factor)).reshape(features, heads * size)

    def bias() -> Array:
        return (call.values(f"{role}/bias", (heads, size)) * np.float32(factor)).reshape(-1)

    held = call.constant(f"{role} by {factor:g}", kernel)
    added = call.constant(f"{role} bias by {factor:g}", bias) if call.config.flag("use_bias", True) else None
    return by_kernel(call, x, ("td", "dhk", "thk"), held, shape, added)


def _merged(call: Call, x: str, heads: int, size: int, out: int) -> str:
    """[heads, time, size] -> [time, features]."""
    shape, role = (heads, size, out), PROJECTIONS[3]
    kernel = call.constant(role, lambda: call.values(f"{role}/kernel", shape).reshape(heads * size, out))
    bias = call.weight(f"{role}/bias", (out,)) if call.config.flag("use_bias", True) else None
    return by_kernel(call, x, ("htk", "hko", "to"), kernel, shape, bias)


def masked(call: Call, scores: str, masks: list[str], ordered: bool) -> str:
    """Scores […, time, steps] where masks and causality allow them; NOTHING elsewhere."""
    seen_steps = _allowed(call, scores, masks, ordered)
    return scores if seen_steps is None else chosen(call, seen_steps, scores)


def _allowed(call: Call, scores: str, masks: list[str], ordered: bool, window: int = 0) -> str | None:
    """Where all masks, [time or 1, steps], causality and a window of steps before and after allow scores […, time,
    steps]; None if that is everywhere."""
    rows, columns = call.builder.shape(scores)[-2:]
    name = f"seen {rows} by {columns}, {ordered} {window}"

    def within() -> Array:
        apart = np.arange(rows)[:, None] - np.arange(columns)
        return ((apart >= 0) | (not ordered)).astype(np.int8) * (not window or np.abs(apart) < window)

    allowed = masks[0] if masks else None
    for mask in masks[1:]:
        allowed = call.one(Whole("and"), str(allowed), mask)
    if (ordered or window) and allowed is not None:
        allowed = call.one(Whole("and"), allowed, right=call.constant(name, within))
    elif ordered or window:
        allowed = call.one(Known(), scores, values=call.constant(name, within))
    return allowed


def _masks(call: Call, query: str, value: str, key: str) -> list[str]:
    """Masks from the layer's arguments and from its input tensors."""
    rows, columns = call.builder.shape(query)[0], call.builder.shape(value)[0]
    of_query = call.builder.masks.get(query)
    if call.config.get("num_query_heads") is not None:
        of_query = _argument(call, "query_mask") or of_query
    found = []
    for mask, shape in (
        (of_query, (rows, 1)),
        (_argument(call, "value_mask") or call.builder.masks.get(value), (1, columns)),
        (_argument(call, "key_mask") or (call.builder.masks.get(key) if key != value else None), (1, columns)),
    ):
        if mask is not None:
            found.append(seen(call, mask, shape))
    given = call.named.get("attention_mask")
    if isinstance(given, Wire):
        mask, wanted = truth(call, given.name), call.builder.shape(given.name)
        found.append(mask if len(wanted) > 1 else seen(call, mask, (1, *wanted)))
    return found


def _argument(call: Call, name: str) -> str | None:
    """A mask given as an argument. (MultiHeadAttention takes the query's from the tensor alone.)"""
    given = call.named.get(name)
    return truth(call, given.name) if isinstance(given, Wire) else None


def truth(call: Call, x: str) -> str:
    """A mask of any type as booleans."""
    tensor = call.builder.tensor(x)
    if tensor.dtype == "int8":
        return x
    kind = np.dtype(tensor.dtype)
    return call.one(Compare("not_equal"), x, right=call.constant(f"no {kind}", lambda: np.zeros((1,), kind)))


def _attend(call: Call, tensors: tuple[str, str, str], masks: list[str]) -> tuple[str, str]:
    """Queries, keys and values [time, heads, size] -> (result [heads, time, size], attention weights)."""
    query, key, value = tensors
    scores = multiplied(call, ("thk", "shk", "hts"), query, key)
    window = call.config.integer("sliding_window") if call.config.get("sliding_window") is not None else 0
    seen_steps = _allowed(call, scores, masks, bool(call.named.get("use_causal_mask")), window)
    shares = softmax_over(call, scores if seen_steps is None else chosen(call, seen_steps, scores), (2,))
    if masks and seen_steps is not None and _by_softmax_layer(call):
        shares = without_masked(call, seen_steps, shares)
    return multiplied(call, ("hts", "shv", "htv"), shares, value), shares


def _by_softmax_layer(call: Call) -> bool:
    """Whether Keras takes its Softmax layer, which gives zeros where all is masked, rather than the fused operation."""
    dropout = call.config.values.get("dropout")
    drops = isinstance(dropout, int | float) and dropout > 0
    return call.dialect.zeros_where_all_is_masked and (drops or bool(call.named.get("return_attention_scores")))


def _multi_head(call: Call) -> tuple[str, ...]:
    given = _given(call, "query", "value", "key")
    if "query" not in given or "value" not in given:
        raise call.config.error("it is called without a query or a value.")
    query, value = given["query"], given["value"]
    key = given.get("key", value)
    places = call.builder.shape(query)[:-1]
    query, value, key = (_as_sequence(call, name) for name in (query, value, key))
    heads, size = call.config.integer("num_heads"), call.config.integer("key_dim")
    depth = call.config.integer("value_dim", size) if "value_dim" in call.config else size
    q = _projected(call, query, PROJECTIONS[0], heads, size, 1 / sqrt(size))
    k = _projected(call, key, PROJECTIONS[1], heads, size)
    v = _projected(call, value, PROJECTIONS[2], heads, depth)
    y, shares = _attend(call, (q, k, v), _masks(call, query, value, key))
    y = _gated(call, y, query, heads, size)
    if call.dialect.keras3:
        for name in given.values():  # Keras 3 takes them from the tensors, for all that read these later
            call.builder.take_mask(name)
    wanted = call.config.integers("output_shape") if "output_shape" in call.config else call.builder.shape(query)[-1:]
    if len(wanted) != 1:
        raise call.config.error(f"its output_shape is {wanted}.", "Give it one number, or none.")
    y = seen(call, _merged(call, y, heads, depth, wanted[0]), (*places, wanted[0]))
    if len(places) > 1 and call.named.get("return_attention_scores"):
        raise call.config.error("it gives the scores of tensors with several axes of places.", PLAIN)
    return _results(call, y, shares)


def _as_sequence(call: Call, x: str) -> str:
    """A tensor with its places along one axis: attention knows no order of theirs."""
    shape, axes = call.builder.shape(x), call.config.get("attention_axes")
    chosen = [axes] if isinstance(axes, int) else list(axes) if isinstance(axes, (list, tuple)) else axes
    wanted = list(range(1, len(shape)))
    if len(shape) < 2 or (chosen is not None and chosen not in (wanted, [i - len(shape) - 1 for i in wanted])):
        raise call.config.error(f"it attends along the axes {shown(axes)} of tensors of the shape {shape}.", PLAIN)
    if len(shape) > 2 and (x in call.builder.masks or call.named.get("attention_mask") is not None):
        raise call.config.error(f"it has a mask over tensors of the shape {shape}.", PLAIN)
    return seen(call, x, (prod(shape[:-1]), shape[-1]))


def _results(call: Call, y: str, shares: str) -> tuple[str, ...]:
    return (y, shares) if call.named.get("return_attention_scores") else (y,)


def _grouped(call: Call) -> tuple[str, ...]:
    given = _given(call, "query", "value", "key")
    if "query" not in given or "value" not in given:
        raise call.config.error("it is called without a query or a value.")
    query, value = given["query"], given["value"]
    key = given.get("key", value)
    _sequences(call, (query, value, key))
    size, heads = call.config.integer("head_dim"), call.config.integer("num_query_heads")
    groups = call.config.integer("num_key_value_heads")
    if heads % groups:
        raise call.config.error(f"its {heads} heads do not divide into {groups}.")
    q = _projected(call, query, PROJECTIONS[0], heads, size, 1 / sqrt(size))
    k = repeated(call, _projected(call, key, PROJECTIONS[1], groups, size), 1, heads // groups)
    v = repeated(call, _projected(call, value, PROJECTIONS[2], groups, size), 1, heads // groups)
    y, shares = _attend(call, (q, k, v), _masks(call, query, value, key))
    y = _gated(call, y, query, heads, size)
    return _results(call, _merged(call, y, heads, size, call.builder.shape(query)[-1]), shares)


def _attention_weights(config: Config, layers: Layers) -> WeightTree:
    roles = ("scale",) if config.flag("use_scale", False) else ()
    return WeightTree((*roles, "concat_score_weight") if config.values.get("score_mode") == "concat" else roles)


def _listed(call: Call) -> tuple[str, str, str]:
    """The tensors in the single list argument: query, value and optionally key."""
    found = list(wires(call.arguments[0] if call.arguments else ()))
    if not 2 <= len(found) <= 3:
        raise call.config.error(f"it is called with {len(found)} tensors instead of two or three.")
    _sequences(call, tuple(found))
    return found[0], found[1], found[-1] if len(found) == 3 else found[1]


def _attention(call: Call) -> tuple[str, ...]:
    query, value, key = _listed(call)
    if call.config.choice("score_mode", "dot", ("dot", "concat")) == "concat":
        factor = call.weight("scale", (), (1,)) if call.config.flag("use_scale", False) else None
        scores = _bent(call, query, key, factor, None)
        weight = call.weight("concat_score_weight", (), (1,))
        return _weighed(call, call.one(Binary("multiply"), scores, right=weight), query, value)
    scores = multiplied(call, ("tk", "sk", "ts"), query, key)
    if call.config.flag("use_scale", False):
        scores = call.one(Binary("multiply"), scores, right=call.weight("scale", (), (1,)))
    return _weighed(call, scores, query, value)


def _weighed(call: Call, scores: str, query: str, value: str) -> tuple[str, ...]:
    """Ignores masked steps of the value; masked steps of the query give zeros."""
    rows, columns = call.builder.shape(scores)
    of_query, of_value = _own_masks(call, query, value)
    seen_steps = [seen(call, of_value, (1, columns))] if of_value is not None else []
    shares = softmax_over(call, masked(call, scores, seen_steps, bool(call.named.get("use_causal_mask"))), (1,))
    y = multiplied(call, ("ts", "sv", "tv"), shares, value)
    if of_query is not None:
        y = call.one(Binary("multiply"), y, call.builder.as_float(seen(call, of_query, (rows, 1))))
    return _results(call, y, shares)


def _own_masks(call: Call, query: str, value: str) -> tuple[str | None, str | None]:
    """Those given as an argument, otherwise those of the tensors."""
    if call.masks is None:
        return call.builder.masks.get(query), call.builder.masks.get(value)
    first, second = (*call.masks, None)[:2]
    return first and truth(call, first), second and truth(call, second)


def _additive(call: Call) -> tuple[str, ...]:
    query, value, key = _listed(call)
    scale = call.weight("scale", call.builder.shape(query)[-1:]) if call.config.flag("use_scale", True) else None
    return _weighed(call, _bent(call, query, key, None, scale), query, value)


def _bent(call: Call, query: str, key: str, inside: str | None, outside: str | None) -> str:
    """The sum over features of tanh(query + key), with factors inside and outside of it."""
    (rows, size), columns = call.builder.shape(query), call.builder.shape(key)[0]
    pairs = call.one(Binary("add"), seen(call, query, (rows, 1, size)), seen(call, key, (1, columns, size)))
    pairs = pairs if inside is None else call.one(Binary("multiply"), pairs, right=inside)
    bent = call.one(Activation("tanh"), pairs)
    bent = bent if outside is None else call.one(Binary("multiply"), bent, right=outside)
    return call.one(Reduce("sum", 2), bent)


def _additive_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(("scale",) if config.flag("use_scale", True) else ())


def _kind(build: Build, weights: WeightRule) -> LayerKind:
    return LayerKind(
        build, weights, sees_mask=True, takes_mask=True, passes_mask=True, takes_whole=True, takes_masks=True
    )


LAYERS = {
    "MultiHeadAttention": _kind(_multi_head, _heads_weights),
    "GroupQueryAttention": _kind(_grouped, _grouped_weights),
    "GroupedQueryAttention": _kind(_grouped, _grouped_weights),
    "Attention": _kind(_attention, _attention_weights),
    "AdditiveAttention": _kind(_additive, _additive_weights),
}
