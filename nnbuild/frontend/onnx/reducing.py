"""Reductions, softmax and arg-extremes, over axes stored in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import as_type, combined, magnitude, pair
from nnbuild.frontend.onnx.arithmetic import whole as of_whole
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call
from nnbuild.frontend.onnx.quantized import ahead, formed, is_scaled
from nnbuild.model.views import stored
from nnbuild.ops.arg import Arg
from nnbuild.ops.layout import Value, arranged, gathered, whole, without
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax

SUMMED = 2**21
SOFTMAX = {"int8": (2.0**-8, -128), "int16": (2.0**-15, 0)}


def reduced(call: Call, x: Value, function: str, axes: Iterable[int], keep: bool, form: Form = FLOAT) -> Value:
    chosen = list(axes)
    x, place, shape = gathered(call, x, chosen)
    view = without(x.view, chosen, keep)
    if shape[place] == 1 and form == call.form(x):
        return replace(x, view=view)
    name = call.add(Reduce(function, place, 1, once=form != FLOAT), [call.seen(x.name, shape)], form=form)
    return replace(x, name=call.seen(name, call.tensor(name).shape), view=view)


def _axes(call: Call, rank: int) -> list[int]:
    listed = call.listed("axes", 1)
    if not listed:
        return [] if call.integer("noop_with_empty_axes", 0) else list(range(rank))
    return call.axes(listed, rank)


def reduce(function: str, call: Call) -> None:
    """Sums, means, extremes."""
    mode = formed(call, 0, same=function in ("max", "min"))
    (x,) = mode.inputs
    axes, keep = _axes(call, len(x.shape)), bool(call.integer("keepdims", 1))
    if not x.is_number:
        call.put(_whole_reduced(call, x, function, axes, keep))
        return
    if mode.is_integer and (prod(x.shape[a] for a in axes) >= SUMMED or call.form(x)[0] == "int16"):
        x, mode = call.as_real(x), replace(mode, form=FLOAT)
    call.put(reduced(call, x, function, axes, keep, mode.form))


def _whole_reduced(call: Call, x: Value, function: str, axes: list[int], keep: bool) -> Value:
    """For integers, whose means lose their fractions."""
    if function in ("max", "min"):
        return _whole_extreme(call, x, function, axes, keep)
    total = _tree(call, "add", x, axes, keep)
    count = np.array(prod(x.shape[a] for a in axes), np.int64)
    return of_whole(call, "divide", total, count) if function == "mean" and count > 1 else total


def extreme(call: Call, x: Value, function: str, axes: list[int], keep: bool) -> Value:
    """The maximum or minimum of numbers of any type."""
    if x.is_number:
        return reduced(call, x, function, axes, keep, call.form(x))
    return _whole_extreme(call, x, function, axes, keep)


def _whole_extreme(call: Call, x: Value, function: str, axes: list[int], keep: bool) -> Value:
    """For integers: a tree of pairwise operations along each axis."""
    for axis in axes:
        while x.shape[axis] > 1:
            half, size = x.shape[axis] // 2, x.shape[axis]
            pieces = [
                _piece(call, x, axis, b, n) for b, n in ((0, half), (half, half), (2 * half, size - 2 * half)) if n
            ]
            made = of_whole(call, f"{function}imum", pieces[0], pieces[1])
            if len(pieces) > 2 and half > 1:
                first = _piece(call, made, axis, 0, 1)
                rest = _piece(call, made, axis, 1, half - 1)
                from nnbuild.frontend.onnx.data_movement import joined

                made = joined(call, [of_whole(call, f"{function}imum", first, pieces[2]), rest], axis)
            elif len(pieces) > 2:
                made = of_whole(call, f"{function}imum", made, pieces[2])
            x = made
    return replace(x, view=without(x.view, axes, keep))


def _piece(call: Call, x: Value, axis: int, begin: int, count: int) -> Value:
    x, order = whole(call, x)
    shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
    begins = tuple(begin if i == axis else 0 for i in order)
    op = Slice(begins, (1,) * len(order), tuple(shape[i] for i in order))
    return replace(x, name=call.add(op, [x.name], form=call.form(x)), view=stored(shape, order))


def reduce_of(before: str, function: str, after: str, call: Call) -> None:
    """A function of every element, a sum, and a function of the sum."""
    given, axes, keep = call.value(0), _axes(call, len(call.shape(0))), bool(call.integer("keepdims", 1))
    if not given.is_number and not after:
        x = pair(call, "multiply", given, given) if before == "square" else magnitude(call, given)
        call.put(_tree(call, "add", x, axes, keep))
        return
    x = as_type(call, given, "float32")
    x = call.activated(x, before) if before else x
    made = reduced(call, x, function, axes, keep)
    made = call.activated(made, after) if after else made
    call.put(made if given.is_number else as_type(call, made, given.dtype))


def log_sum_exp(call: Call) -> None:
    """Subtracts the maximum first, so that nothing overflows."""
    x = call.real(0)
    axes, keep = _axes(call, len(x.shape)), bool(call.integer("keepdims", 1))
    most = reduced(call, x, "max", axes, True)
    grown = call.activated(combined(call, "subtract", x, most), "exponential")
    logs = call.activated(reduced(call, grown, "sum", axes, True), "log")
    made = combined(call, "add", logs, most)
    call.put(replace(made, view=without(made.view, axes, keep)))


def product(call: Call) -> None:
    x = call.value(0)
    x = call.as_real(x) if x.is_number else x
    call.put(_tree(call, "multiply", x, _axes(call, len(x.shape)), bool(call.integer("keepdims", 1))))


def _tree(call: Call, function: str, x: Value, axes: list[int], keep: bool) -> Value:
    """A tree of pairwise operations along each axis."""
    for axis in axes:
        while x.shape[axis] > 1:
            size = x.shape[axis]
            half = size // 2
            made = pair(call, function, _piece(call, x, axis, 0, half), _piece(call, x, axis, half, half))
            if size % 2:
                last = _piece(call, x, axis, size - 1, 1)
                if half == 1:
                    made = pair(call, function, made, last)
                else:
                    from nnbuild.frontend.onnx.data_movement import joined

                    made = joined(call, [made, last], axis)
            x = made
    return replace(x, view=without(x.view, axes, keep))


def softmax_axes(call: Call, rank: int) -> list[int]:
    """Before opset 13, all axes from the given one on."""
    if call.opset >= 13:
        return [call.axis(call.integer("axis", -1), rank)]
    return list(range(call.axis(call.integer("axis", 1), rank), rank))


def softmax(call: Call) -> None:
    x = call.value(0)
    axes = softmax_axes(call, len(x.shape))
    following = ahead(call, clamps=False) if is_scaled(call, x) else None
    if following is not None and following.form[1] is not None and call.form(x)[0] == following.form[0]:
        quant = following.form[1]
        if (quant.scale, quant.zero_point) == SOFTMAX[following.form[0]]:
            call.put(_softmax(call, x, axes, following.form))
            return
    call.put(_softmax(call, call.as_real(x), axes))


def _softmax(call: Call, x: Value, axes: list[int], form: Form = FLOAT) -> Value:
    x, place, shape = gathered(call, x, axes)
    return replace(x, name=call.add(Softmax(place, 1), [call.seen(x.name, shape)], form=form), dtype="float32")


def softmax_of(call: Call, x: Value, axis: int) -> Value:
    return _softmax(call, call.as_real(x), [axis])


def log_softmax(call: Call) -> None:
    x = call.real(0)
    axes = softmax_axes(call, len(x.shape))
    shifted = combined(call, "subtract", x, reduced(call, x, "max", axes, True))
    total = reduced(call, call.activated(shifted, "exponential"), "sum", axes, True)
    call.put(combined(call, "subtract", shifted, call.activated(total, "log")))


def hardmax(call: Call) -> None:
    """1 at the first maximum, otherwise 0."""
    from nnbuild.frontend.onnx.arithmetic import compared
    from nnbuild.frontend.onnx.data_movement import as_shape

    x = call.real(0)
    shape = x.shape
    axes = softmax_axes(call, len(shape))
    flat = as_shape(call, x, (*shape[: axes[0]], prod(shape[a] for a in axes), *shape[axes[-1] + 1 :]))
    axis = axes[0]
    call.within_tables(flat.shape[axis])
    place = extreme_place(call, flat, "max", axis, keep=True)
    numbers = np.arange(flat.shape[axis], dtype=np.int32).reshape(
        [-1 if i == axis else 1 for i in range(len(flat.shape))]
    )
    made = call.converted(compared(call, "equal", place, numbers), FLOAT, "float32")
    call.put(as_shape(call, made, shape))


def extreme_place(call: Call, x: Value, function: str, axis: int, keep: bool) -> Value:
    x = arranged(call, x, [], [axis]) if len(x.view.axes[axis]) > 1 else x
    x, place, shape = gathered(call, x, [axis])
    name = call.add(Arg(function, place), [call.seen(x.name, shape)], form=INT32)
    return replace(x, name=name, view=without(x.view, [axis], keep), dtype="int64")


def arg(function: str, call: Call) -> None:
    x = call.value(0)
    x = call.as_real(x) if x.is_number else x
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    keep, size = bool(call.integer("keepdims", 1)), x.shape[axis]
    if call.integer("select_last_index", 0):
        from nnbuild.frontend.onnx.data_movement import every, part

        ranges = every(x.shape)
        ranges[axis] = (size - 1, -1 if size > 1 else 1, size)
        x = part(call, x, ranges)
        made = extreme_place(call, x, function, axis, keep)
        made = of_whole(call, "subtract", np.array(size - 1, np.int64), made)
    else:
        made = extreme_place(call, x, function, axis, keep)
    call.put(made)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "ReduceMean": partial(reduce, "mean"),
    "ReduceSum": partial(reduce, "sum"),
    "ReduceMax": partial(reduce, "max"),
    "ReduceMin": partial(reduce, "min"),
    "ReduceL1": partial(reduce_of, "absolute", "sum", ""),
    "ReduceL2": partial(reduce_of, "square", "sum", "sqrt"),
    "ReduceSumSquare": partial(reduce_of, "square", "sum", ""),
    "ReduceLogSum": partial(reduce_of, "", "sum", "log"),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceProd": product,
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
    "Hardmax": hardmax,
    "ArgMax": partial(arg, "max"),
    "ArgMin": partial(arg, "min"),
}
