"""Nodes with only constant inputs: computed at compile time, so that later nodes see constants.

Exporters write shape arithmetic as nodes. Every shape is known here, and so are the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.onnx import sound_constants
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.type_numbers import TYPE_NAMES
from nnbuild.model.graph import Array
from nnbuild.ops.layout import NUMBERS

LARGEST = 2**24
"""Maximum elements of one folded tensor: a small file must not claim much memory."""
Fold = Callable[[Call, Sequence[Array]], Sequence[Array]]


def folded(call: Call) -> bool:
    """Whether the node's outputs were computed."""
    kind = call.node.kind
    if call.node.domain:
        return False
    if kind in SOURCES:
        call.put(SOURCES[kind](call))
        return True
    fold = FOLDS.get(kind)
    if fold is None:
        return False
    given = [i for i in range(call.count) if call.given(i)][: OF_FIRST.get(kind)]
    if not given or not all(map(call.is_known, given)):
        return False
    try:
        with np.errstate(all="ignore"):
            results = fold(call, [call.constant(i) for i in given])
    except NotImplementedError:  # a rare option, which the node's reader knows
        return False
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError):
        raise call.error("its constants do not match each other.") from None
    for index, values in enumerate(results):
        made = np.asarray(values)
        _within(call, made.size)
        call.put(made.copy() if made.base is not None else made, index)
    if kind == "Transpose":
        _turn_integers(call)
    return True


def _turn_integers(call: Call) -> None:
    """Exporters transpose weights behind their DequantizeLinear."""
    held = call.scaled(0)
    if held is None or not held.integers.ndim:
        return
    rank = held.integers.ndim
    order = [axis % rank for axis in call.integers("perm") or reversed(range(rank))]
    turned = replace(held, integers=held.integers.transpose(order), axis=order.index(held.axis % rank))
    call.scope.scaled[call.node.outputs[0]] = turned


def _within(call: Call, elements: int) -> None:
    call.expect(0 <= elements <= LARGEST, f"its output would have {elements} elements.")


def _ints(values: Array) -> tuple[int, ...]:
    return tuple(int(v) for v in values.reshape(-1))


def _like(function: Callable[..., Any]) -> Fold:
    """Elementwise, in the type of the first operand."""

    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        _within(call, prod(np.broadcast_shapes(*(v.shape for v in given))))
        return [np.asarray(function(*given)).astype(given[0].dtype)]

    return fold


def _truth(function: Callable[..., Any]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        _within(call, prod(np.broadcast_shapes(*(v.shape for v in given))))
        return [np.asarray(function(*given)).astype(bool)]

    return fold


def _divided(left: Array, right: Array) -> Array:
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.trunc(left.astype(np.float64) / right))


def _modulo(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    left, right = given
    if left.dtype.kind != "f" and not right.all():
        raise ZeroDivisionError
    return [np.asarray((np.fmod if call.integer("fmod", 0) else np.mod)(left, right)).astype(left.dtype)]


def _several(function: Callable[..., Any]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        made = given[0]
        for other in given[1:]:
            _within(call, prod(np.broadcast_shapes(made.shape, other.shape)))
            made = np.asarray(function(made, other)).astype(given[0].dtype)
        return [made]

    return fold


def _clip(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    x, *_ = given
    for index, name, bound in ((1, "min", np.maximum), (2, "max", np.minimum)):
        if call.given(index):
            x = bound(x, call.constant(index))
        elif call.has(name):
            x = bound(x, np.asarray(call.number(name), x.dtype))
    return [x]


def _cast(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    to = TYPE_NAMES.get(call.integer("to"))
    call.expect(to is not None and given[0].dtype.kind in "fiub", "it casts to a type that nnbuild does not read.")
    return [given[0].astype(to)]


def _cast_like(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    call.expect(call.name_of(1) not in call.importer.model.narrow, "it casts to four bits.")
    like = call.dtype(1)
    return [given[0].astype("float32" if like in NUMBERS else like)]


def _slice(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if call.opset >= 10:
        x, starts, ends = given[0], _ints(given[1]), _ints(given[2])
        axes = _ints(call.constant(3)) if call.given(3) else tuple(range(len(starts)))
        steps = _ints(call.constant(4)) if call.given(4) else (1,) * len(starts)
    else:
        x, starts, ends = given[0], call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes") or tuple(range(len(starts))), (1,) * len(starts)
    key: list[Any] = [slice(None)] * x.ndim
    for begin, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        key[axis] = slice(begin, None if step < 0 and end < -size else end, step)
    return [x[tuple(key)]]


def _concat(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [np.concatenate(given, call.integer("axis", 0))]


def _gather(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axis = call.integer("axis", 0)
    _within(call, given[1].size * max(1, given[0].size // max(1, given[0].shape[axis])))
    return [given[0].take(given[1], axis)]


def _gather_nd(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if call.integer("batch_dims", 0):
        raise NotImplementedError
    return [given[0][tuple(np.moveaxis(given[1], -1, 0))]]


def _unsqueeze(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axes = call.listed("axes", 1) or ()
    return [np.expand_dims(given[0], tuple(axes))]


def _squeeze(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axes = call.listed("axes", 1)
    return [np.squeeze(given[0], None if axes is None else tuple(axes))]


def _reshape(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    from nnbuild.frontend.onnx.data_movement import target_shape

    return [given[0].reshape(target_shape(call, call.listed("shape", 1) or (), given[0].shape))]


def _flatten(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axis = call.integer("axis", 1)
    return [given[0].reshape(prod(given[0].shape[:axis]), -1)]


def _transpose(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0].transpose(call.integers("perm") or None)]


def _expand(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    shape = np.broadcast_shapes(given[0].shape, _ints(given[1]))
    _within(call, prod(shape))
    return [np.broadcast_to(given[0], shape)]


def _tile(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    _within(call, given[0].size * prod(_ints(given[1])))
    return [np.tile(given[0], _ints(given[1]))]


def _split(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axis, count = call.integer("axis", 0), len(call.node.outputs)
    sizes = call.listed("split", 1)
    size = given[0].shape[axis]
    each = -(-size // count)
    sizes = sizes or tuple(min(each, size - i * each) for i in range(count))
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 0:
        raise ValueError
    return np.split(given[0], np.cumsum(sizes)[:-1], axis)


def _range(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    start, limit, step = (v.reshape(()).item() for v in given)
    _within(call, int(max(0, np.ceil((limit - start) / step))))
    return [np.arange(start, limit, step).astype(given[0].dtype)]


def _constant_of_shape(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    found = call.attribute("value")
    value = found.tensor if found is not None and found.tensor is not None else np.zeros(1, np.float32)
    _within(call, prod(_ints(given[0])))
    return [np.full(_ints(given[0]), value.reshape(-1)[0], value.dtype)]


def _reduced(function: Callable[..., Any]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        axes = call.listed("axes", 1)
        if not axes and call.integer("noop_with_empty_axes", 0):
            return [given[0]]
        keep = bool(call.integer("keepdims", 1))
        if not given[0].size and function is np.mean:
            raise ValueError
        found = function(given[0], axis=tuple(axes) if axes else None, keepdims=keep)
        return [np.asarray(found).astype(given[0].dtype)]

    return fold


def _arg(function: Callable[..., Any]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        if call.integer("select_last_index", 0):
            raise NotImplementedError
        return [
            np.asarray(function(given[0], axis=call.integer("axis", 0), keepdims=bool(call.integer("keepdims", 1))))
        ]

    return fold


def _one_hot(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    indices, depth, values = given
    count = int(depth.reshape(-1)[0])
    _within(call, indices.size * count)
    indices = np.where(indices < 0, indices + count, indices)
    found = np.where(indices[..., None] == np.arange(count), values[1], values[0])
    return [np.moveaxis(found, -1, call.integer("axis", -1)).astype(values.dtype)]


def _non_zero(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [np.stack(np.nonzero(given[0])).astype(np.int64).reshape(given[0].ndim, -1)]


def _trilu(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    offset = int(given[1].reshape(-1)[0]) if len(given) > 1 else 0
    return [(np.triu if call.integer("upper", 1) else np.tril)(given[0], offset)]


def _pad(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if call.opset < 11 or call.text("mode", "constant") != "constant" or call.given(3) or min(_ints(given[1])) < 0:
        raise NotImplementedError
    flat = _ints(given[1])
    amounts = list(zip(flat[: len(flat) // 2], flat[len(flat) // 2 :], strict=True))
    _within(call, prod(n + a + b for n, (a, b) in zip(given[0].shape, amounts, strict=True)))
    return [np.pad(given[0], amounts, constant_values=given[2].reshape(-1)[0] if len(given) > 2 else 0)]


def _cumsum(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if call.integer("exclusive", 0) or call.integer("reverse", 0):
        raise NotImplementedError
    return [np.cumsum(given[0], int(given[1].reshape(-1)[0])).astype(given[0].dtype)]


def _scatter_nd(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if call.text("reduction", "none") != "none":
        raise NotImplementedError
    made = given[0].copy()
    made[tuple(np.moveaxis(given[1], -1, 0))] = given[2]
    return [made]


def _matmul(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0] @ given[1]]


def _identity(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0]]


def _constant(call: Call) -> Array:
    """Reads a Constant node in any of its forms."""
    found = next(iter(call.node.attributes.values()), None)
    found = call.attribute(found.name) if found is not None else None
    if found is None:
        raise call.error("it has no value.")
    values = {
        "value": found.tensor,
        "value_float": np.float32(found.number),
        "value_floats": np.array(found.floats, np.float32),
        "value_int": np.int64(found.integer),
        "value_ints": np.array(found.integers, np.int64),
        "value_string": np.array(found.text),
        "value_strings": np.array(found.texts),
    }.get(found.name)
    if values is None:
        raise call.error("it has no value that nnbuild reads.")
    return np.asarray(values)


def _shape(call: Call) -> Array:
    shape = call.shape(0)
    rank = len(shape)
    start, end = call.integer("start", 0), call.integer("end", rank)
    return np.array(shape[slice(start, end)], np.int64)


def _size(call: Call) -> Array:
    return np.array(prod(call.shape(0)), np.int64)


def _eye_of(call: Call) -> Array:
    shape = call.shape(0)
    call.expect(len(shape) == 2, "it needs a matrix.")
    dtype = TYPE_NAMES.get(call.integer("dtype", 0), call.dtype(0))
    return np.asarray(np.eye(shape[0], shape[1], call.integer("k", 0)), dtype)


SOURCES: Mapping[str, Callable[[Call], Array]] = {
    "Constant": _constant,
    "Shape": _shape,
    "Size": _size,
    "EyeLike": _eye_of,
}
"""Nodes whose results are known even if the input's values are not."""


def _standardized(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    """Weights by their own statistics: layers that standardize them write a BatchNormalization in training mode."""
    if not call.integer("training_mode", 0):
        raise NotImplementedError
    values, scale, shift, *running = (each.astype(np.float64) for each in given)
    rows, kept = np.moveaxis(values, 1, -1), call.number("momentum", 0.9)
    found = [of(rows, axis=tuple(range(rows.ndim - 1))) for of in (np.mean, np.var)]
    made = (rows - found[0]) / np.sqrt(found[1] + call.number("epsilon", 1e-5)) * scale + shift
    after = [kept * old + (1 - kept) * new for old, new in zip(running, found, strict=True)]
    return [each.astype(np.float32) for each in (np.moveaxis(made, -1, 1), *after)][: len(call.node.outputs)]


OF_FIRST = {"CastLike": 1}
"""How many inputs the result depends on; of the others only the type counts."""

FOLDS: Mapping[str, Fold] = {
    "Identity": _identity,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Slice": _slice,
    "Concat": _concat,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Expand": _expand,
    "Tile": _tile,
    "Split": _split,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Add": _like(np.add),
    "Sub": _like(np.subtract),
    "Mul": _like(np.multiply),
    "Div": _like(_divided),
    "Mod": _modulo,
    "Pow": _like(np.power),
    "Neg": _like(np.negative),
    "Abs": _like(np.abs),
    "Sign": _like(np.sign),
    "Sqrt": _like(np.sqrt),
    "Exp": _like(np.exp),
    "Log": _like(np.log),
    "Sin": _like(np.sin),
    "Cos": _like(np.cos),
    "Floor": _like(np.floor),
    "Ceil": _like(np.ceil),
    "Round": _like(np.rint),
    "Reciprocal": _like(lambda x: 1 / x),
    "Clip": _clip,
    "Relu": _like(lambda x: np.maximum(x, 0)),
    "Max": _several(np.maximum),
    "Min": _several(np.minimum),
    "Sum": _several(np.add),
    "Equal": _truth(np.equal),
    "Greater": _truth(np.greater),
    "GreaterOrEqual": _truth(np.greater_equal),
    "Less": _truth(np.less),
    "LessOrEqual": _truth(np.less_equal),
    "And": _truth(np.logical_and),
    "Or": _truth(np.logical_or),
    "Xor": _truth(np.logical_xor),
    "Not": _truth(np.logical_not),
    "IsNaN": _truth(np.isnan),
    "Where": lambda call, given: [np.where(*given)],
    "ReduceSum": _reduced(np.sum),
    "ReduceProd": _reduced(np.prod),
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceMean": _reduced(np.mean),
    "ArgMax": _arg(np.argmax),
    "ArgMin": _arg(np.argmin),
    "OneHot": _one_hot,
    "NonZero": _non_zero,
    "Trilu": _trilu,
    "Pad": _pad,
    "CumSum": _cumsum,
    "ScatterND": _scatter_nd,
    "MatMul": _matmul,
    "BatchNormalization": _standardized,
    **sound_constants.FOLDS,
}
