"""Matrix products and patches as single operations; one operand of a product may be a constant."""

from __future__ import annotations

from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.checked_config import Config, is_integer
from nnbuild.frontend.keras_layers.activation import sample_axes, softmax_over
from nnbuild.frontend.keras_layers.attention import masked, truth
from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.normalization import as_array
from nnbuild.frontend.keras_layers.operation_selection import operands
from nnbuild.frontend.keras_layers.operation_shapes import BATCH
from nnbuild.frontend.keras_layers.products import (
    Parts,
    by_kernel,
    equation_of,
    matrix,
    multiplied,
    ordered,
    repeated,
    seen,
)
from nnbuild.model.graph import Array
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.gather import Gather
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.select import Select
from nnbuild.ops.whole import Whole

OTHERWISE = "Express it with a Keras layer, or compute it outside the model."
MOST_PARTS = 1024
"""Places of a window whose patches are put together place by place."""
ATTENDED = ("query", "key", "value", "bias", "mask")


def matmul(call: Call) -> str:
    left, right = operands(call, 2, "x1", "x2", "a", "b")
    turned = [call.named.get(key) is True for key in ("transpose_a", "transpose_b")]
    if not isinstance(left, Wire) or not isinstance(right, Wire):
        return _matmul_by_constant(call, *(_turned(call, *side) for side in zip((left, right), turned, strict=True)))
    names = [call.builder.as_float(side.name) for side in (left, right)]
    ranks = {len(call.builder.shape(name)) for name in names}
    if len(ranks) != 1 or min(ranks) < 2:
        raise call.config.error("its operands have an unsupported number of axes.", OTHERWISE)
    lead = "abcdefgh"[: ranks.pop() - 2]
    first, second = (lead + (ends[::-1] if turn else ends) for ends, turn in zip(("xk", "ky"), turned, strict=True))
    return multiplied(call, (first, second, f"{lead}xy"), *names)


def _turned(call: Call, side: Any, turned: bool) -> Any:
    """A tensor or a constant with its last two axes exchanged."""
    if not turned:
        return side
    held = None if isinstance(side, Wire) else as_array(call.config, side, "constant")
    rank = len(call.builder.shape(side.name)) if held is None else held.ndim
    if rank < 2:
        raise call.config.error("it transposes an operand of fewer than two axes.", OTHERWISE)
    if held is not None:
        return np.swapaxes(held, -1, -2)
    return Wire(ordered(call, side.name, (*range(rank - 2), rank - 1, rank - 2)))


def dot(call: Call) -> str:
    left, right = operands(call, 2, "x1", "x2")
    if not isinstance(left, Wire) or isinstance(right, Wire):
        raise call.config.error("it multiplies the samples of a batch with each other.", "Use keras.ops.matmul.")
    if as_array(call.config, right, "constant").ndim > 2:
        raise call.config.error("its constant has more than two axes.", OTHERWISE)
    return _matmul_by_constant(call, left, right)


def inner(call: Call) -> str:
    """The sum of products along the last axes of a tensor and a constant."""
    left, right = operands(call, 2, "x1", "x2")
    if not isinstance(left, Wire) or isinstance(right, Wire):
        raise call.config.error("it multiplies the samples of a batch with each other.", "Use keras.ops.einsum.")
    held = as_array(call.config, right, "constant")
    return _over(call, left, held, (len(call.builder.shape(left.name)),), (held.ndim - 1,))


def tensordot(call: Call) -> str:
    """A sum of products of a tensor and a constant along any of their axes; those of the constant come last."""
    left, right = operands(call, 2, "x1", "x2", "a", "b")
    if not isinstance(left, Wire) or isinstance(right, Wire):
        raise call.config.error("it multiplies the samples of a batch with each other.", "Use keras.ops.einsum.")
    held, rank = as_array(call.config, right, "constant"), len(call.builder.shape(left.name)) + 1
    found = options(call)
    if is_integer(found.get("axes")):
        count = found.integer("axes", minimum=0)
        return _over(call, left, held, tuple(range(rank - count, rank)), tuple(range(count)))
    pairs = found.items("axes")
    if len(pairs) != 2:
        raise call.config.wrong("axes", "a number, or the axes of both operands")
    mine, other = (Config(call.config.where, {"axes": pair}).integers("axes") for pair in pairs)
    return _over(call, left, held, mine, other)


def _over(call: Call, x: Wire, held: Array, mine: tuple[int, ...], other: tuple[int, ...]) -> str:
    """Sums over pairs of axes, which include the batch."""
    rank = len(call.builder.shape(x.name)) + 1
    fits = len(mine) == len(other) and rank + held.ndim <= len(ascii_letters)
    own, column = ascii_letters[:rank], list(ascii_letters[rank : rank + held.ndim])
    places = {at % held.ndim: axis % rank for axis, at in zip(mine, other, strict=False) if held.ndim}
    fits = fits and len(places) == len(set(places.values())) == len(mine) and 0 not in places.values()
    fits = fits and all(-rank <= axis < rank for axis in mine) and all(-held.ndim <= at < held.ndim for at in other)
    if not fits:
        cause = f"it sums along the axes {mine} of {call.builder.shape(x.name)} and {other} of a constant {held.shape}."
        raise call.config.error(cause, BATCH)
    for at, axis in places.items():
        column[at] = own[axis]
    free = [c for c in own[1:] if c not in column]
    out = "".join((*free, *(c for c in column if c not in own)))
    return _by_constant(call, x.name, held, (own[1:], "".join(column), out))


def _matmul_by_constant(call: Call, left: Any, right: Any) -> str:
    x, other = (left, right) if isinstance(left, Wire) else (right, left)
    if not isinstance(x, Wire):
        raise call.config.error("it multiplies two constants.", OTHERWISE)
    rank, held = len(call.builder.shape(x.name)), as_array(call.config, other, "constant")
    while held.ndim > 2 and held.shape[0] == 1 and held.ndim <= rank + 1:
        held = held[0]
    lead = "abcdefgh"[: rank - 1 if x is left else rank - 2]
    row, column = ("k", "ky"[: held.ndim]) if x is left else ("ky", "xk"[2 - held.ndim :])
    if held.ndim not in (1, 2) or not (1 if x is left else 2) <= rank <= 8:
        raise call.config.error(f"it multiplies by a constant {held.shape} along the batch.", OTHERWISE)
    out = column.replace("k", "") if x is left else column.replace("k", "") + "y"
    return _by_constant(call, x.name, held, (lead + row, column, lead + out))


def _by_constant(call: Call, x: str, held: Array, parts: Parts) -> str:
    x = call.builder.as_float(x)
    sizes = dict(zip(parts[0], call.builder.shape(x), strict=True))
    if any(sizes.get(letter, size) != size for letter, size in zip(parts[1], held.shape, strict=True)):
        cause = f"it multiplies {call.builder.shape(x)} by a constant {held.shape}."
        raise call.config.error(cause, OTHERWISE)
    values = np.ascontiguousarray(matrix(held, parts), np.float32)
    kernel = call.constant(f"factor of {call.builder.layer}", lambda: values)
    return by_kernel(call, x, parts, kernel, held.shape, None)


def einsum(call: Call) -> str:
    """An einsum of a tensor with another one or a constant; the first letter of a tensor is the batch."""
    given = [item for item in call.arguments if isinstance(item, str)]
    equation = call.config.get("subscripts") or (given[0] if given else None)
    factors = [item for item in call.arguments if not isinstance(item, str)]
    if not factors:
        cause = "Keras 2 saved this einsum without the tensors that it multiplies."
        raise call.config.error(cause, "Use tf.matmul, or a layer such as EinsumDense or Dot.")
    if len(factors) == 1 and call.inputs:
        return _einsum_of_one(call, equation)
    if len(factors) != 2 or not call.inputs:
        raise call.config.error(f"it multiplies {len(factors)} operands.", OTHERWISE)
    if len(call.inputs) == 1:
        return _einsum_by_constant(call, equation, factors)
    a, b, out = equation_of(call.config, equation, tuple(len(call.builder.shape(n)) + 1 for n in call.inputs))
    if not (a[0] == b[0] == out[:1]):
        raise call.config.error("its equation works along the batch axis.", OTHERWISE)
    names = [call.builder.as_float(name) for name in call.inputs]
    return multiplied(call, (a[1:], b[1:], out[1:]), *names)


def _einsum_of_one(call: Call, equation: Any) -> str:
    """Sums over the axes that the result has not, and orders those that it has."""
    own, out = equation_of(call.config, equation, (len(call.shape) + 1,))
    if own[0] != out[:1]:
        raise call.config.error("its equation works along the batch axis.", OTHERWISE)
    x, kept = call.input, [c for c in own[1:] if c in out]
    for axis in reversed([i for i, c in enumerate(own[1:]) if c not in out]):
        x = call.one(Reduce("sum", axis, 1), call.builder.as_float(x))
    return ordered(call, x, tuple(kept.index(c) for c in out[1:]))


def _einsum_by_constant(call: Call, equation: Any, factors: list[Any]) -> str:
    at = next(place for place, factor in enumerate(factors) if isinstance(factor, Wire))
    held = as_array(call.config, factors[1 - at], "constant")
    ranks = [held.ndim, held.ndim]
    ranks[at] = len(call.shape) + 1
    *letters, out = equation_of(call.config, equation, tuple(ranks))
    own, column = letters[at], letters[1 - at]
    if own[0] in column or own[0] != out[:1]:
        raise call.config.error("its equation works along the batch axis.", OTHERWISE)
    return _by_constant(call, call.input, held, (own[1:], column, out[1:]))


def attention(call: Call) -> str:
    """Queries, keys and values [time, heads, size]."""
    given = {**dict(zip(ATTENDED, call.arguments, strict=False)), **call.named}
    names = [given[name].name for name in ATTENDED[:3] if isinstance(given.get(name), Wire)]
    if len(names) != 3 or any(len(call.builder.shape(name)) != 3 for name in names):
        raise call.config.error("its query, key and value are not tensors [time, heads, size].", OTHERWISE)
    query, key, value = names
    (_, heads, size), groups = call.builder.shape(query), call.builder.shape(key)[1]
    if heads % groups:
        raise call.config.error(f"its {heads} heads do not divide into {groups}.", OTHERWISE)
    options(call).refuse("attn_logits_soft_cap", OTHERWISE)
    key, value = (repeated(call, name, 1, heads // groups) for name in (key, value))
    scale = options(call).get("scale")
    factor = np.float32(scale if isinstance(scale, int | float) else 1 / np.sqrt(size))
    held = call.constant(f"scale {factor}", lambda: np.full((1,), factor, np.float32))
    scores = call.one(Binary("multiply"), multiplied(call, ("thk", "shk", "hts"), query, key), right=held)
    if isinstance(given.get("bias"), Wire):
        scores = call.one(Binary("add"), scores, call.builder.as_float(given["bias"].name))
    masks = [truth(call, given["mask"].name)] if isinstance(given.get("mask"), Wire) else []
    shares = softmax_over(call, masked(call, scores, masks, options(call).get("is_causal") is True), (2,))
    return ordered(call, multiplied(call, ("hts", "shv", "htv"), shares, value), (1, 0, 2))


def take_along_axis(call: Call) -> str:
    """One element per index, at the same place of all other axes; the indices are computed."""
    x, indices = operands(call, 2, "x", "indices")
    if not isinstance(x, Wire) or not isinstance(indices, Wire):
        raise call.config.error("one of its operands is a constant.", OTHERWISE)
    shape, chosen = call.builder.shape(x.name), call.builder.shape(indices.name)
    found = options(call)
    if "axis" not in found or not call.builder.tensor(indices.name).is_whole:
        raise call.config.error("it has no axis, or indices that are no integers.", OTHERWISE)
    (axis,) = sample_axes(call.config, (found.one("axis"),), shape)
    others = [n for i, n in enumerate(shape) if i != axis]
    if [n for i, n in enumerate(chosen) if i != axis] != others:
        raise call.config.error(f"its indices {chosen} do not fit its input {shape}.", OTHERWISE)
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    row = seen(call, ordered(call, x.name, order), (prod(shape),))
    at = _from_the_front(call, call.convert(indices.name, INT32), shape[axis])
    at = seen(call, ordered(call, at, order), (prod(others), chosen[axis]))
    begins = np.arange(prod(others), dtype=np.int32)[:, None] * shape[axis]
    at = call.one(Whole("add"), at, right=call.constant(f"begins of {call.builder.layer}", lambda: begins))
    made = call.one(Gather(0), row, seen(call, at, (prod(chosen),)))
    back = tuple(order.index(i) for i in range(len(shape)))
    return ordered(call, seen(call, made, (*others, chosen[axis])), back)


def _from_the_front(call: Call, indices: str, size: int) -> str:
    """Negative indices count from the end."""

    def held(value: int) -> str:
        return call.constant(f"index {value}", lambda: np.full((1,), value, np.int32))

    behind = call.one(Compare("less"), indices, right=held(0))
    return call.one(Select(), behind, call.one(Whole("add"), indices, right=held(size)), indices)
