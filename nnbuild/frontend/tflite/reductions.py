"""Pooling, and reductions over whole axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.elementwise import SHIFT_LIMIT
from nnbuild.frontend.tflite.linear import image, padding, pair
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.model.graph import Shape
from nnbuild.numeric.multiplier import SUM_SCALE_LIMIT
from nnbuild.numeric.product import product_ratio
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.product import Product
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.whole import Whole
from nnbuild.ops.windows import NO_PADDING

COUNT_LIMIT = 2**15
"""Maximum elements of one mean: their sum stays within 32 bits."""


def pool(function: str, call: Call) -> None:
    kind = "Pool2DOptions"
    x, shape, outer = image(call, 0)
    call.same_quant(x)
    window = pair(call, kind, "FilterHeight", "FilterWidth", 0)
    strides = pair(call, kind, "StrideH", "StrideW", 0)
    around = padding(call, kind, shape, window, strides)
    call.expect(window[0] * window[1] < COUNT_LIMIT, f"its window of {window} is too large.")
    ties = window[0] * window[1] % 2 == 0 or around != NO_PADDING
    upward = call.operator.unsigned and function == "average" and ties
    call.done(call.add(Pool2D(function, window, strides, around, call.clamp(kind), upward), [x], outer=outer))


def reduce(function: str, call: Call) -> None:
    """Moves axes that are not adjacent to the end together."""
    whole = call.whole(0)
    axes = sorted({call.axis(a, len(whole)) for a in call.integers(1)})
    keep = bool(call.option("ReducerOptions", "KeepDims", False))
    left = tuple(1 if i in axes else n for i, n in enumerate(whole) if keep or i not in axes)
    call.expect(bool(axes), "it names no axes.", CONVERT_AGAIN)
    if call.batch == 1 and whole[0] == 1 and len(axes) > 1 and axes[0] == 0:
        axes = axes[1:]  # nothing to sum over a batch of one
    name, missing = call.view(0, axes[0] == 0)
    axes, rank = [axis - missing for axis in axes], len(whole) - missing
    if function in ("max", "min"):
        call.same_quant(name)
    if function == "product" or (call.like().is_whole and call.like().dtype == "int32"):
        _in_halves(call, function, name, axes, left)
        return
    _within_sums(call, function, name, axes)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        kept = [axis for axis in range(rank) if axis not in axes]
        name = call.add(Transpose((*kept, *axes)), [name], like=call.tensor(name))
        axes = list(range(len(kept), rank))
    call.reshaped(call.add(Reduce(function, axes[0], len(axes)), [name]), whole=left)


FOLDS = {"mean": "add", "sum": "add", "product": "multiply", "max": "maximum", "min": "minimum"}


def _in_halves(call: Call, function: str, name: str, axes: list[int], left: Shape) -> None:
    """For whole numbers and products: halves repeatedly; a mean of integers is an exact division. Products of integers
    with a scale are computed one after the other."""
    like, shape = call.like(), call.shape(name)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    count = prod(shape[axis] for axis in axes)
    turned = call.add(Transpose((*axes, *kept)), [name], like=call.tensor(name))
    rows = call.seen(turned, (count, prod(shape[axis] for axis in kept)))
    own = call.tensor(name).quant
    if not (call.is_float() or (like.is_whole and like.dtype == "int32")):
        call.expect(own is not None and like.quant is not None and not like.is_whole, "it has no scale.", CONVERT_AGAIN)
        assert own is not None and like.quant is not None
        call.ratio(product_ratio(own.scale, like.quant.scale, count), SUM_SCALE_LIMIT)
        call.reshaped(call.add(Product(), [rows]), whole=left)
        return
    made = folded(call, FOLDS[function], rows)
    if function == "mean":
        size = np.asarray([count], np.int32)
        divisor = call.assembly.constant(call.operator, f"{call.layer}/count", size, like.quant)
        made = call.add(Whole("divide"), [made], {"right": divisor})
    call.reshaped(made, whole=left)


def folded(call: Call, function: str, name: str) -> str:
    """Reduces all rows to one: each round combines two halves."""
    op = Binary(function) if call.is_float() else Whole(function)
    count, size = call.shape(name)
    while count > 1:
        half = count // 2
        parts = [call.add(Slice((begin, 0), (1, 1), (half, size)), [name]) for begin in (0, half)]
        made = call.add(op, parts)
        if count % 2:
            made = call.add(Concatenate(0), [made, call.add(Slice((count - 1, 0), (1, 1), (1, size)), [name])])
        name, count = made, half + count % 2
    return name


def _within_sums(call: Call, function: str, name: str, axes: list[int]) -> None:
    own, out = call.tensor(name).quant, call.like().quant
    if own is None or out is None or function in ("max", "min"):
        return
    count = 1
    for axis in axes:
        count *= call.shape(name)[axis]
    limit = COUNT_LIMIT if call.output().dtype == "int16" else COUNT_LIMIT * 64
    call.expect(count < limit, f"it sums {count} elements, which do not fit 32 bits.")
    call.ratio(own.scale / out.scale, SHIFT_LIMIT)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "AVERAGE_POOL_2D": partial(pool, "average"),
    "MAX_POOL_2D": partial(pool, "max"),
    "MEAN": partial(reduce, "mean"),
    "SUM": partial(reduce, "sum"),
    "REDUCE_MAX": partial(reduce, "max"),
    "REDUCE_MIN": partial(reduce, "min"),
    "REDUCE_PROD": partial(reduce, "product"),
}
