"""Attention nodes and rotary embeddings, composed of products, softmax and sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined, compared, left_out, times_plus
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, padded, part, repeated
from nnbuild.frontend.onnx.products import multiplied
from nnbuild.frontend.onnx.reducing import reduced, softmax_of
from nnbuild.model.graph import Array
from nnbuild.model.views import transposed
from nnbuild.ops.layout import Value

FAR = np.float32(-1e30)
"""Added to a masked score."""


def _heads(call: Call, x: Value, count: int) -> Value:
    """[batch, steps, heads * size] as [batch, heads, steps, size]."""
    if len(x.shape) == 4:
        return x
    batch, steps, width = x.shape
    call.expect(count > 0 and width % count == 0, f"{count} heads do not evenly divide {width} features.")
    split = as_shape(call, x, (batch, steps, count, width // count))
    return replace(split, view=transposed(split.view, (0, 2, 1, 3)))


def attention(call: Call) -> None:
    flat = len(call.shape(0)) == 3
    heads = call.integer("q_num_heads", 0), call.integer("kv_num_heads", 0)
    query, key, value = (_heads(call, call.real(i), heads[min(i, 1)]) for i in range(3))
    past = 0
    if call.given(4) and call.given(5):
        past = call.shape(4)[2]
        key = joined(call, [call.real(4), key], 2)
        value = joined(call, [call.real(5), value], 2)
    if call.given(6):
        raise call.unsupported("it has key lengths (nonpad_kv_seqlen)")
    call.put(key, 1)
    call.put(value, 2)
    groups, rest = divmod(query.shape[1], key.shape[1])
    call.expect(rest == 0, f"{query.shape[1]} query heads are not a multiple of {key.shape[1]}.")
    key, value = (_shared(call, x, groups) for x in (key, value))
    scale = call.number("scale", 0.0) or 1 / sqrt(query.shape[-1])
    call.expect(call.integer("qk_matmul_output_mode", 0) in range(4), "its qk_matmul_output_mode is unknown.")
    turned = replace(key, view=transposed(key.view, (0, 1, 3, 2)))
    scores = multiplied(call, times_plus(call, query, scale), turned)
    mode, cap = call.integer("qk_matmul_output_mode", 0), call.number("softcap", 0.0)
    scores = _capped(call, scores, cap) if cap else scores
    bias = _bias(call, query.shape[2], key.shape[2], past)
    masked = scores
    if bias is not None:
        masked = combined(call, "add", scores, bias) if isinstance(bias, Value) else left_out(call, scores, bias)
    shares = softmax_of(call, masked, 3)
    if bias is not None:
        shares = _without_lost_rows(call, shares, bias)
    call.put((scores, scores, masked, shares)[mode], 3)
    made = multiplied(call, shares, value)
    if flat:
        batch, count, steps, size = made.shape
        made = replace(made, view=transposed(made.view, (0, 2, 1, 3)))
        made = as_shape(call, made, (batch, steps, count * size))
    call.put(made)


def _capped(call: Call, scores: Value, cap: float) -> Value:
    call.expect(1e-30 < abs(cap) < 1e30, f"its scores are capped at {cap:g}.")
    return times_plus(call, call.activated(times_plus(call, scores, 1 / cap), "tanh"), cap)


def _shared(call: Call, x: Value, groups: int) -> Value:
    """Repeats each key or value head for its group of query heads."""
    if groups == 1:
        return x
    batch, heads, steps, size = x.shape
    wide = repeated(call, as_shape(call, x, (batch, heads, 1, steps, size)), (batch, heads, groups, steps, size))
    return as_shape(call, wide, (batch, heads * groups, steps, size))


def _bias(call: Call, rows: int, columns: int, past: int) -> Value | Array | None:
    """The term added to the scores: none, or very negative numbers for masked ones."""
    call.within_tables(rows * columns)
    ahead = np.arange(columns)[None, :] - np.arange(rows)[:, None] - past
    kept = np.ones((rows, columns), bool)
    windows = call.integer("left_window_size", -1), call.integer("right_window_size", -1)
    if call.integer("is_causal", 0):
        kept &= ahead <= 0
    if windows[0] >= 0:
        kept &= ahead >= -windows[0]
    if windows[1] >= 0:
        kept &= ahead <= windows[1]
    known = None if kept.all() else _as_summand(kept)
    if not call.given(3):
        return known
    mask = call.item(3)
    if not isinstance(mask, Value):
        summand = _widened(_as_summand(mask), columns)
        return summand if known is None else np.maximum(summand + known, FAR)
    if not mask.is_number:
        mask = times_plus(call, call.converted(call.truth(mask), FLOAT, "float32"), -float(FAR), float(FAR))
    missing = columns - mask.shape[-1]
    if missing > 0:
        around = [(0, 0)] * (len(mask.shape) - 1) + [(0, missing)]
        mask = padded(call, call.as_real(mask), around, "constant", float(FAR))
    return mask if known is None else combined(call, "add", mask, known)


def _without_lost_rows(call: Call, shares: Value, bias: Value | Array) -> Value:
    """A query without any allowed key gets zeros."""
    if not isinstance(bias, Value):
        lost = bias.max(axis=-1, keepdims=True) <= FAR / 2
        return combined(call, "multiply", shares, (~lost).astype(np.float32)) if lost.any() else shares
    most = reduced(call, bias, "max", [len(bias.shape) - 1], True)
    some = call.converted(compared(call, "greater", most, FAR / 2), FLOAT, "float32")
    return combined(call, "multiply", shares, some)


def _as_summand(mask: Array) -> Array:
    if mask.dtype == bool:
        return np.where(mask, np.float32(0), FAR)
    return np.maximum(mask.astype(np.float32), FAR)


def _widened(mask: Array, size: int) -> Array:
    missing = size - mask.shape[-1]
    around = [(0, 0)] * (mask.ndim - 1) + [(0, max(0, missing))]
    return np.pad(mask, around, constant_values=FAR)


def rotary(call: Call) -> None:
    """Rotates pairs of features by the angle of their position."""
    x, flat = call.real(0), len(call.shape(0)) == 3
    x = _heads(call, x, call.integer("num_heads", 0))
    batch, heads, steps, size = x.shape
    turned = call.integer("rotary_embedding_dim", 0) or size
    call.expect(turned % 2 == 0 and turned <= size, f"it rotates {turned} of {size} features.")
    angles = [_angles(call, index, steps, turned // 2) for index in (1, 2)]
    mixed = bool(call.integer("interleaved", 0))
    shape = (batch, heads, steps, turned // 2, 2) if mixed else (batch, heads, steps, 2, turned // 2)
    axis = 4 if mixed else 3
    pieces = as_shape(call, _range(call, x, 3, 0, turned), shape)
    low, high = (as_shape(call, _range(call, pieces, axis, i, 1), (batch, heads, steps, turned // 2)) for i in (0, 1))
    cos, sin = angles
    real = combined(call, "subtract", combined(call, "multiply", low, cos), combined(call, "multiply", high, sin))
    imaginary = combined(call, "add", combined(call, "multiply", low, sin), combined(call, "multiply", high, cos))
    place = (batch, heads, steps, turned // 2, 1) if mixed else (batch, heads, steps, 1, turned // 2)
    made = joined(call, [as_shape(call, v, place) for v in (real, imaginary)], axis)
    made = as_shape(call, made, (batch, heads, steps, turned))
    if turned < size:
        made = joined(call, [made, _range(call, x, 3, turned, size - turned)], 3)
    if flat:
        made = replace(made, view=transposed(made.view, (0, 2, 1, 3)))
        made = as_shape(call, made, (batch, steps, heads * size))
    call.put(made)


def _range(call: Call, x: Value, axis: int, begin: int, count: int) -> Value:
    ranges = every(x.shape)
    ranges[axis] = (begin, 1, count)
    return part(call, x, ranges)


def _angles(call: Call, index: int, steps: int, half: int) -> Value | Array:
    """[batch, 1, steps, half], looked up by position where positions are given."""
    item = call.item(index)
    if call.given(3):
        places = call.constant(3)
        call.expect(not isinstance(item, Value), "its position tables are computed at run time.")
        item = call.weights(index)[places]
    if isinstance(item, Value):
        item = call.as_real(item)
        return as_shape(call, item, (item.shape[0], 1, steps, half))
    return call.as_floats(item, "angles").reshape(-1, 1, steps, half)


OPERATORS: dict[str, Callable[[Call], None]] = {"Attention": attention, "RotaryEmbedding": rotary}
