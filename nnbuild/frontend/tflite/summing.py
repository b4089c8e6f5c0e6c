"""Pools, and reductions over whole axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.elementwise import SHIFT_LIMIT
from nnbuild.frontend.tflite.linear import image, padding, pair
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.transpose import Transpose

COUNT_LIMIT = 2**15
"""Elements of one mean: their sum stays within 32 bits."""


def pool(function: str, call: Call) -> None:
    kind = "Pool2DOptions"
    x, shape, outer = image(call, 0)
    call.same_quant(x)
    window = pair(call, kind, "FilterHeight", "FilterWidth", 0)
    strides = pair(call, kind, "StrideH", "StrideW", 0)
    around = padding(call, kind, shape, window, strides)
    call.expect(window[0] * window[1] < COUNT_LIMIT, f"its window of {window} is too large.")
    call.done(call.add(Pool2D(function, window, strides, around, call.clamp(kind)), [x], outer=outer))


def reduce(function: str, call: Call) -> None:
    """Axes that do not neighbour each other are brought to the end together."""
    whole = call.whole(0)
    axes = sorted({call.axis(a, len(whole)) for a in call.integers(1)})
    keep = bool(call.option("ReducerOptions", "KeepDims", False))
    left = tuple(1 if i in axes else n for i, n in enumerate(whole) if keep or i not in axes)
    call.expect(bool(axes), "it names no axes.", CONVERT_AGAIN)
    if call.batch == 1 and whole[0] == 1 and len(axes) > 1 and axes[0] == 0:
        axes = axes[1:]  # a batch of one has nothing to sum
    name, missing = call.view(0, axes[0] == 0)
    axes, rank = [axis - missing for axis in axes], len(whole) - missing
    if function in ("max", "min"):
        call.same_quant(name)
    _within_sums(call, function, name, axes)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        kept = [axis for axis in range(rank) if axis not in axes]
        name = call.add(Transpose((*kept, *axes)), [name], like=call.tensor(name))
        axes = list(range(len(kept), rank))
    call.reshaped(call.add(Reduce(function, axes[0], len(axes)), [name]), whole=left)


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
}
