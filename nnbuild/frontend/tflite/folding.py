"""Operators with only constant inputs: computed at compile time, so that later operators see constants.

Converters write shape arithmetic as operators wherever the batch is open: SHAPE, STRIDED_SLICE, PACK and so on. With
one sample at a time every shape is known, and so are the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.elementwise import steps_of
from nnbuild.frontend.tflite.records import NUMBERS, Quantization, Tensor
from nnbuild.frontend.tflite.shaping import expect_no_offsets
from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.functions import apply

LARGEST = 2**24
"""Maximum elements of one folded tensor: a small file must not claim much memory."""
Fold = Callable[[Call, Sequence[Array]], Sequence[Array]]


def folded(call: Call) -> bool:
    """Whether the operator's outputs were computed, because none of its inputs is a run-time tensor."""
    kind = call.operator.kind
    if kind in ("SHAPE", "RANK"):
        shape, counts = call.whole(0), _out_type(call)
        call.expect(counts in ("int32", "int64"), f"its output is of type {counts}.")
        call.fold(np.asarray(shape if kind == "SHAPE" else len(shape), counts))
        return True
    if kind == "STABLEHLO_IOTA":
        call.fold(_counted(call))
        return True
    if kind == "ZEROS_LIKE":
        _within(call, prod(call.whole(0)))
        call.fold(np.zeros(call.whole(0), _out_type(call)))
        return True
    fold = FOLDS.get(kind)
    given = [i for i in range(len(call.operator.inputs)) if call.given(i)]
    if fold is None or not given or not all(call.is_constant(i) or 0 in call.whole(i) for i in given):
        return False
    if any(call.stored(i).quantization is not None and kind not in (*MOVES, "FILL") for i in given):
        return False
    if any(call.stored(i).dtype not in NUMBERS.values() or call.stored(i).is_sparse for i in given):
        return False
    try:
        with np.errstate(all="ignore"):
            results = _clamped(call, fold(call, [_values(call.stored(i)) for i in given]))
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError):
        raise call.error("its constants do not match each other.") from None
    call.expect(len(results) == len(call.operator.outputs), "it has the wrong number of outputs.")
    for index, values in enumerate(results):
        _within(call, values.size)
        call.fold(np.asarray(values), index, _quantization(call, given))
    return True


def _values(stored: Tensor) -> Array:
    """A tensor without elements has no data in the file, as the shape of a single number."""
    return np.zeros(stored.shape, stored.dtype) if stored.data is None else stored.values()


def _clamped(call: Call, results: Sequence[Array]) -> Sequence[Array]:
    """With the operator's fused activation."""
    options = call.operator.options
    if options is None or "FusedActivationFunction" not in vars(type(options)):
        return results
    clamp = call.clamp(call.operator.options_kind)
    return [values if clamp == NO_CLAMP else np.clip(values, clamp.low, clamp.high) for values in results]


def _counted(call: Call) -> Array:
    """0, 1, 2 … along one axis."""
    shape, axis = call.output().shape, int(call.option("StablehloIotaOptions", "IotaDimension", 0))
    _within(call, prod(shape))
    call.expect(0 <= axis < len(shape), f"it counts along the invalid axis {axis} of {list(shape)}.")
    along = np.arange(shape[axis], dtype=_out_type(call)).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(along, shape)


def _quantization(call: Call, given: Sequence[int]) -> Quantization | None:
    """Operators that only move values keep the input's scale, or for FILL the value's."""
    kind = call.operator.kind
    carried = given[0] if kind in MOVES else given[-1] if kind == "FILL" else None
    return None if carried is None else call.stored(carried).quantization


def _within(call: Call, elements: int) -> None:
    call.expect(0 <= elements <= LARGEST, f"its output would have {elements} elements.")


def _out_type(call: Call) -> Any:
    kind = call.output().dtype
    call.expect(kind in NUMBERS.values(), f"its output is of type {kind}.")
    return np.dtype(kind)


def _whole(values: Array) -> tuple[int, ...]:
    return tuple(int(v) for v in values.reshape(-1))


def _axis(call: Call, kind: str, name: str = "Axis", default: int = 0) -> int:
    return int(call.option(kind, name, default))


def _elementwise(function: Callable[..., Array]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        if isinstance(function, np.ufunc) and len(given) != function.nin:  # an extra argument would be the output array
            raise TypeError
        _within(call, prod(np.broadcast_shapes(*(v.shape for v in given))))
        return [np.asarray(function(*given)).astype(_out_type(call))]

    return fold


def _divided(left: Array, right: Array) -> Array:
    """Integer division truncates towards zero, as in C."""
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.trunc(left.astype(np.float64) / right))


def _floored(function: Callable[..., Array], left: Array, right: Array) -> Array:
    if right.dtype.kind == "i" and not right.all():
        raise ZeroDivisionError
    return function(left, right)


def _strided_slice(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    kind, (x, *bounds) = "StridedSliceOptions", given
    expect_no_offsets(call)
    begins, ends, steps = (_whole(b) for b in bounds)
    masks = {n: _axis(call, kind, f"{n}Mask") for n in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    key: list[Any] = []
    for i, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        has = {name: mask >> i & 1 for name, mask in masks.items()}
        if has["Ellipsis"]:
            key.append(Ellipsis)
        elif has["NewAxis"]:
            key.append(None)
        elif has["ShrinkAxis"]:
            key.append(begin)
        else:
            key.append(slice(None if has["Begin"] else begin, None if has["End"] else end, step))
    return [np.asarray(x[tuple(key)])]


def _pack(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [np.stack(given, _axis(call, "PackOptions"))]


def _unpack(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return list(np.moveaxis(given[0], _axis(call, "UnpackOptions"), 0))


def _split(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axis, x = given
    return np.split(x, len(call.operator.outputs), int(axis.reshape(())))


def _split_v(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    x, sizes, axis = given
    place = int(axis.reshape(()))
    rest = x.shape[place] - int(sizes[sizes >= 0].sum())
    each = np.where(sizes < 0, rest, sizes)
    if min(each, default=0) < 0 or each.sum() != x.shape[place]:
        raise ValueError
    return np.split(x, np.cumsum(each)[:-1], place)


def _concatenation(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [np.concatenate(given, _axis(call, "ConcatenationOptions"))]


def _gather(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    axis, shared = _axis(call, "GatherOptions"), _axis(call, "GatherOptions", "BatchDims")
    if shared:
        raise ValueError
    _within(call, given[1].size * max(1, given[0].size // max(1, given[0].shape[axis])))
    return [given[0].take(given[1], axis)]


def _gather_nd(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0][tuple(np.moveaxis(given[1], -1, 0))]]


def _range(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    start, limit, step = (float(v.reshape(())) for v in given)
    _within(call, int(max(0, np.ceil((limit - start) / step))))
    return [np.arange(start, limit, step).astype(_out_type(call))]


def _fill(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    shape = _whole(given[0])
    _within(call, prod(shape))
    return [np.full(shape, given[1].reshape(()))]


def _broadcast_to(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    shape = _whole(given[1])
    _within(call, prod(shape))
    return [np.broadcast_to(given[0], shape).copy()]


def _tile(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    counts = _whole(given[1])
    _within(call, given[0].size * prod(counts))
    return [np.tile(given[0], counts)]


def _one_hot(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    indices, depth, on, off = given
    count, axis = int(depth.reshape(())), _axis(call, "OneHotOptions", default=-1)
    _within(call, indices.size * count)
    found = np.where(indices[..., None] == np.arange(count), on.reshape(()), off.reshape(()))
    return [np.moveaxis(found, -1, axis).astype(_out_type(call))]


def _reduced(function: Callable[..., Array]) -> Fold:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        keep = bool(call.option("ReducerOptions", "KeepDims", False))
        found = function(given[0], axis=_whole(given[1]), keepdims=keep)
        return [np.asarray(found).astype(_out_type(call))]

    return fold


def _slice(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    x, begins, sizes = given[0], _whole(given[1]), _whole(given[2])
    if len(begins) != x.ndim or min(begins, default=0) < 0:
        raise ValueError
    ends = [n if size == -1 else begin + size for n, begin, size in zip(x.shape, begins, sizes, strict=True)]
    return [x[tuple(slice(begin, end) for begin, end in zip(begins, ends, strict=True))]]


def _reshape(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0].reshape(call.target_shape())]


def _transpose(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [given[0].transpose(_whole(given[1]))]


def _broadcast_args(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    return [np.asarray(np.broadcast_shapes(*(_whole(v) for v in given)), _out_type(call))]


def _pad(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    amounts = [(int(a), int(b)) for a, b in given[1]]
    _within(call, prod(n + a + b for n, (a, b) in zip(given[0].shape, amounts, strict=True)))
    return [np.pad(given[0], amounts, constant_values=given[2].reshape(()).item() if len(given) > 2 else 0)]


def _fake_quant(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    if given[0].dtype != np.float32:
        raise TypeError
    return [apply("steps", steps_of(call), given[0])]


MOVES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "STRIDED_SLICE", "SLICE", "GATHER", "GATHER_ND", "TILE")
"""Operators that only move values, so that the output has the first input's scale."""

FOLDS: Mapping[str, Fold] = {
    "STRIDED_SLICE": _strided_slice,
    "SLICE": _slice,
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "CONCATENATION": _concatenation,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "CAST": _elementwise(lambda x: x),
    "ADD": _elementwise(np.add),
    "SUB": _elementwise(np.subtract),
    "MUL": _elementwise(np.multiply),
    "DIV": _elementwise(_divided),
    "FLOOR_DIV": _elementwise(partial(_floored, np.floor_divide)),
    "FLOOR_MOD": _elementwise(partial(_floored, np.mod)),
    "MAXIMUM": _elementwise(np.maximum),
    "MINIMUM": _elementwise(np.minimum),
    "NEG": _elementwise(np.negative),
    "ABS": _elementwise(np.abs),
    "SQRT": _elementwise(np.sqrt),
    "RSQRT": _elementwise(lambda x: 1 / np.sqrt(x)),
    "SQUARE": _elementwise(np.square),
    "FLOOR": _elementwise(np.floor),
    "CEIL": _elementwise(np.ceil),
    "EQUAL": _elementwise(np.equal),
    "NOT_EQUAL": _elementwise(np.not_equal),
    "LESS": _elementwise(np.less),
    "LESS_EQUAL": _elementwise(np.less_equal),
    "GREATER": _elementwise(np.greater),
    "GREATER_EQUAL": _elementwise(np.greater_equal),
    "LOGICAL_AND": _elementwise(np.logical_and),
    "LOGICAL_OR": _elementwise(np.logical_or),
    "LOGICAL_NOT": _elementwise(np.logical_not),
    "SELECT": _elementwise(np.where),
    "SELECT_V2": _elementwise(np.where),
    "RANGE": _range,
    "FAKE_QUANT": _fake_quant,
    "FILL": _fill,
    "BROADCAST_TO": _broadcast_to,
    "BROADCAST_ARGS": _broadcast_args,
    "TILE": _tile,
    "ONE_HOT": _one_hot,
    "PAD": _pad,
    "PADV2": _pad,
    "SUM": _reduced(np.sum),
    "REDUCE_PROD": _reduced(np.prod),
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "REDUCE_ANY": _reduced(np.any),
    "REDUCE_ALL": _reduced(np.all),
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "TRANSPOSE": _transpose,
}
