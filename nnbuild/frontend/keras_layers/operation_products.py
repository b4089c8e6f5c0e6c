"""Matrix products and patches as single operations; one operand of a product may be a constant."""

from __future__ import annotations

from itertools import product as places
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.keras_layers.activation import sample_axes, softmax_over
from nnbuild.frontend.keras_layers.attention import masked, truth
from nnbuild.frontend.keras_layers.base import Call, Wire
from nnbuild.frontend.keras_layers.normalization import as_array
from nnbuild.frontend.keras_layers.operation_selection import operands
from nnbuild.frontend.keras_layers.operation_shapes import options
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
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.gather import Gather
from nnbuild.ops.pad import Pad
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.whole import Whole
from nnbuild.ops.windows import same_padding

OTHERWISE = "Express it with a Keras layer, or compute it outside the model."
MOST_PARTS = 1024
"""Places of a window whose patches are put together place by place."""
ATTENDED = ("query", "key", "value", "bias", "mask")


def matmul(call: Call) -> str:
    left, right = operands(call, 2, "x1", "x2", "a", "b")
    turned = [call.named.get(key) is True for key in ("transpose_a", "transpose_b")]
    if not isinstance(left, Wire) or not isinstance(right, Wire):
        if any(turned):
            raise call.config.error("it transposes an operand of a product by a constant.", OTHERWISE)
        return _matmul_by_constant(call, left, right)
    names = [call.builder.as_float(side.name) for side in (left, right)]
    ranks = {len(call.builder.shape(name)) for name in names}
    if len(ranks) != 1 or min(ranks) < 2:
        raise call.config.error("its operands have an unsupported number of axes.", OTHERWISE)
    lead = "abcdefgh"[: ranks.pop() - 2]
    first, second = (lead + (ends[::-1] if turn else ends) for ends, turn in zip(("xk", "ky"), turned, strict=True))
    return multiplied(call, (first, second, f"{lead}xy"), *names)


def dot(call: Call) -> str:
    left, right = operands(call, 2, "x1", "x2")
    if not isinstance(left, Wire) or isinstance(right, Wire):
        raise call.config.error("it multiplies the samples of a batch with each other.", "Use keras.ops.matmul.")
    if as_array(call.config, right, "constant").ndim > 2:
        raise call.config.error("its constant has more than two axes.", OTHERWISE)
    return _matmul_by_constant(call, left, right)


def _matmul_by_constant(call: Call, left: Any, right: Any) -> str:
    x, other = (left, right) if isinstance(left, Wire) else (right, left)
    if not isinstance(x, Wire):
        raise call.config.error("it multiplies two constants.", OTHERWISE)
    rank, held = len(call.builder.shape(x.name)), as_array(call.config, other, "constant")
    while held.ndim > 2 and held.shape[0] == 1 and held.ndim <= rank + 1:
        held = held[0]
    lead = "abcdefgh"[: rank - 1 if x is left else rank - 2]
    row, column = ("k", "ky"[: held.ndim]) if x is left else ("ky", "xk"[2 - held.ndim :])
    if held.ndim not in (1, 2) or (x is not left and rank < 2):
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
    if len(factors) != 2 or not call.inputs:
        raise call.config.error(f"it multiplies {len(factors)} operands.", OTHERWISE)
    if len(call.inputs) == 1:
        return _einsum_by_constant(call, equation, factors)
    a, b, out = equation_of(call.config, equation, tuple(len(call.builder.shape(n)) + 1 for n in call.inputs))
    if not (a[0] == b[0] == out[:1]):
        raise call.config.error("its equation works along the batch axis.", OTHERWISE)
    names = [call.builder.as_float(name) for name in call.inputs]
    return multiplied(call, (a[1:], b[1:], out[1:]), *names)


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


def patches(call: Call) -> str:
    """The windows of an image, each as channels: row by row, then column by column."""
    found, shape = options(call), call.shape
    if len(shape) != 3 or found.get("data_format") not in (None, "channels_last"):
        raise call.config.error("its images are not [height, width, channels].", OTHERWISE)
    taps = found.pair("size")
    strides = found.pair("strides") if found.values.get("strides") is not None else taps
    dilation = found.pair("dilation_rate")
    x, spans = call.input, tuple((n - 1) * d + 1 for n, d in zip(taps, dilation, strict=True))
    if found.choice("padding", "valid", ("valid", "same")) == "same":
        sides = tuple(same_padding(*each) for each in zip(shape[:2], taps, strides, dilation, strict=True))
        x = call.one(Pad((*sides, (0, 0))), x) if any(map(any, sides)) else x
    rows, columns, channels = call.builder.shape(x)
    counts = tuple((n - span) // s + 1 for n, span, s in zip((rows, columns), spans, strides, strict=True))
    if min(counts) < 1 or prod(taps) > MOST_PARTS:
        raise call.config.error(f"it takes patches of {taps} from images of {shape}.", OTHERWISE)
    if taps == strides and dilation == (1, 1):
        return _tiles(call, x, taps, (*counts, channels))
    parts = [
        call.one(Slice((i * dilation[0], j * dilation[1], 0), (*strides, 1), (*counts, channels)), x)
        for i, j in places(*map(range, taps))
    ]
    return call.one(Concatenate(2), *parts) if len(parts) > 1 else parts[0]


def _tiles(call: Call, x: str, taps: tuple[int, int], counts: Shape) -> str:
    """Patches side by side only move."""
    (rows, columns, channels), shape = counts, call.builder.shape(x)
    whole = (rows * taps[0], columns * taps[1], channels)
    x = x if shape == whole else call.one(Slice((0, 0, 0), (1, 1, 1), whole), x)
    x = ordered(call, seen(call, x, (rows, taps[0], columns, taps[1] * channels)), (0, 2, 1, 3))
    return seen(call, x, (rows, columns, prod(taps) * channels))
