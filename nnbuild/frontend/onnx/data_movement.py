"""Operators that only move elements: transposing and reshaping are free; slices and padding follow the stored order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.onnx.call import INT32, Call
from nnbuild.model.graph import WHOLE, Shape
from nnbuild.model.views import View, reshaped, stored, transposed
from nnbuild.ops.base import Pair
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.layout import Value, common_order, ordered, plain, whole
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.slice import Slice
from nnbuild.ops.whole import Whole

Range = tuple[int, int, int]
"""(begin, step, count) along one axis."""
MOST_COPIES = 512
LARGEST = 2**24


def identity(call: Call) -> None:
    if call.node.kind == "Dropout" and call.given(2):
        training = call.item(2)
        still = not isinstance(training, Value) and not training.any()
        call.expect(still, "it is in training mode.", "Export the model in evaluation mode.")
    for index in range(len(call.node.outputs)):
        if index == 0:
            call.put(call.any(0))
        elif call.node.kind == "Dropout":
            call.within_tables(prod(call.shape(0)))
            call.put(np.ones(call.shape(0), bool), index)


def transpose(call: Call) -> None:
    x = call.value(0)
    order = call.integers("perm") or tuple(reversed(range(len(x.shape))))
    call.expect(sorted(order) == list(range(len(x.shape))), f"{list(order)} is not an order of {len(x.shape)} axes.")
    call.put(replace(x, view=transposed(x.view, order)))


def as_shape(call: Call, x: Value, shape: Shape) -> Value:
    """Reshapes; where the stored order does not allow it, first reorders to ONNX's order."""
    view = reshaped(x.view, shape)
    if view is None:
        x = plain(call, x)
        view = reshaped(x.view, shape)
    if view is None:
        row = ordered(call, x, [a for axis in x.view.axes for a in axis])
        return replace(row, view=stored(shape))
    return replace(x, view=view)


def target_shape(call: Call, wanted: Sequence[int], shape: Shape) -> Shape:
    """Replaces 0 by the old size, unless zeros are allowed, and -1 by the remaining size."""
    found = list(wanted)
    if not call.integer("allowzero", 0):
        call.expect(all(n or i < len(shape) for i, n in enumerate(found)), f"its shape {found} has no such axis.")
        found = [n or shape[i] for i, n in enumerate(found)]
    known = prod(n for n in found if n != -1)
    fits = min(found, default=1) >= -1 and found.count(-1) <= 1 and known > 0 and prod(shape) % known == 0
    call.expect(fits, f"{list(shape)} cannot be reshaped to {found}.")
    made = tuple(prod(shape) // known if n == -1 else n for n in found)
    call.expect(prod(made) == prod(shape), f"{list(shape)} cannot be reshaped to {found}.")
    return made


def reshape(call: Call) -> None:
    x = call.value(0)
    wanted = call.listed("shape", 1)
    call.expect(wanted is not None, "its new shape is missing.")
    call.put(as_shape(call, x, target_shape(call, wanted or (), x.shape)))


def flatten(call: Call) -> None:
    x, axis = call.value(0), call.integer("axis", 1)
    rank = len(x.shape)
    call.expect(-rank <= axis <= rank, f"its axis {axis} does not exist.")
    axis = axis + rank if axis < 0 else axis
    call.put(as_shape(call, x, (prod(x.shape[:axis]), prod(x.shape[axis:]))))


def squeeze(call: Call) -> None:
    x = call.value(0)
    listed, rank = call.listed("axes", 1), len(x.shape)
    axes = call.axes(listed, rank) if listed is not None else [i for i, n in enumerate(x.shape) if n == 1]
    call.expect(all(x.shape[a] == 1 for a in axes), f"its axes {axes} are not 1 in {list(x.shape)}.")
    call.put(replace(x, view=View(x.view.atoms, tuple(a for i, a in enumerate(x.view.axes) if i not in axes))))


def unsqueeze(call: Call) -> None:
    x, listed = call.value(0), call.listed("axes", 1) or ()
    rank = len(x.shape) + len(listed)
    axes, left = call.axes(listed, rank), list(x.view.axes)
    view = View(x.view.atoms, tuple(() if i in axes else left.pop(0) for i in range(rank)))
    call.put(replace(x, view=view))


def part(call: Call, x: Value, ranges: Sequence[Range]) -> Value:
    """Slices; `ranges` refer to ONNX's axes."""
    if all(r == (0, 1, n) for r, n in zip(ranges, x.shape, strict=True)):
        return x
    x, order = whole(call, x)
    begins, steps, counts = (tuple(ranges[i][k] for i in order) for k in range(3))
    made = call.add(Slice(begins, steps, counts), [x.name], form=call.form(x))
    return replace(x, name=made, view=stored(tuple(r[2] for r in ranges), order))


def every(shape: Shape) -> list[Range]:
    return [(0, 1, n) for n in shape]


def slice_(call: Call) -> None:
    x = call.value(0)
    if call.opset >= 10:
        starts, ends = call.whole_numbers(1), call.whole_numbers(2)
        axes = call.whole_numbers(3) if call.given(3) else tuple(range(len(starts)))
        steps = call.whole_numbers(4) if call.given(4) else (1,) * len(starts)
    else:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes") or tuple(range(len(starts))), (1,) * len(starts)
    call.expect(len(starts) == len(ends) == len(axes) == len(steps), "its ranges do not match each other.")
    ranges = every(x.shape)
    for begin, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = call.axis(axis, len(x.shape))
        call.expect(step != 0, "its step is 0.")
        taken = range(x.shape[place])[_python_slice(begin, end, step, x.shape[place])]
        call.expect(len(taken) > 0, "its output is empty.")
        ranges[place] = (taken.start, taken.step if len(taken) > 1 else 1, len(taken))
    call.put(part(call, x, ranges))


def _python_slice(begin: int, end: int, step: int, size: int) -> slice:
    """In ONNX, ends before the beginning mean the beginning itself."""
    if step < 0 and end < 0 and end + size < 0:
        return slice(begin, None, step)
    return slice(begin, end, step)


def split(call: Call) -> None:
    x, count = call.value(0), len(call.node.outputs)
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    size = x.shape[axis]
    sizes = call.listed("split", 1)
    if sizes is None:
        each = -(-size // count)
        sizes = tuple(min(each, size - i * each) for i in range(count))
    call.expect(len(sizes) == count and sum(sizes) == size and min(sizes) > 0, f"its parts {list(sizes)} are wrong.")
    begin = 0
    for index, n in enumerate(sizes):
        ranges = every(x.shape)
        ranges[axis] = (begin, 1, n)
        call.put(part(call, x, ranges), index)
        begin += n


def concat(call: Call) -> None:
    call.expect(call.count > 0, "it has no inputs.")
    call.put(joined(call, [call.value(i) for i in range(call.count)], call.integer("axis", 0)))


def joined(call: Call, values: Sequence[Value], axis: int) -> Value:
    """Concatenates along an ONNX axis."""
    from nnbuild.frontend.onnx.quantized import ahead, is_scaled

    rank = len(values[0].shape)
    axis = call.axis(axis, rank)
    call.expect(len(values) <= MOST_COPIES, f"it concatenates {len(values)} tensors.")
    call.expect(all(len(v.shape) == rank for v in values), "its inputs differ in their number of axes.")
    rest = {(*v.shape[:axis], *v.shape[axis + 1 :]) for v in values}
    call.expect(len(rest) == 1, f"the inputs {[list(v.shape) for v in values]} differ in axes other than {axis}.")
    form = call.form(values[0])
    if values[0].is_number:
        forms = {call.form(v) for v in values}
        following = ahead(call, clamps=False) if all(is_scaled(call, v) for v in values) else None
        if following is not None and {f[0] for f in forms} == {following.form[0]}:
            form = following.form
        elif len(forms) > 1 or (form[1] is not None and form[0] not in ("int8", "int16")):
            values = [call.as_real(v) for v in values]
            form = call.form(values[0])
    else:
        values = [call.converted(v, form, values[0].dtype) for v in values]
    if len(values) == 1:
        return values[0]
    order = common_order(values)
    names = [whole(call, v, order)[0].name for v in values]
    shape = tuple(sum(v.shape[i] for v in values) if i == axis else n for i, n in enumerate(values[0].shape))
    if form == INT32:
        made = _overlaid(call, names, [v.shape[axis] for v in values], shape[axis], order.index(axis))
    else:
        made = call.add(Concatenate(order.index(axis), once=form[1] is not None), names, form=form)
    return Value(made, stored(shape, order), values[0].dtype)


def _overlaid(call: Call, names: Sequence[str], sizes: Sequence[int], total: int, place: int) -> str:
    """Concatenates integers as a sum: each padded with zeros."""
    made, begin = "", 0
    for name, size in zip(names, sizes, strict=True):
        rank = len(call.tensor(name).shape)
        around = tuple((begin, total - begin - size) if i == place else (0, 0) for i in range(rank))
        grown = call.add(Pad(around), [name], form=INT32)
        made = call.add(Whole("or"), [made, grown], form=INT32) if made else grown
        begin += size
    return made


def pad(call: Call) -> None:
    x = call.value(0)
    rank = len(x.shape)
    if call.opset >= 11:
        flat = call.whole_numbers(1)
        value = float(call.constant(2).reshape(-1)[0]) if call.given(2) and call.constant(2).size else 0.0
        axes = call.axes_in_order(3, rank) if call.given(3) else list(range(rank))
    else:
        flat, value, axes = call.integers("pads"), call.number("value", 0.0), list(range(rank))
    call.expect(len(flat) == 2 * len(axes) and all(abs(n) < LARGEST for n in flat), f"its pads are {list(flat)}.")
    around: list[Pair] = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        around[axis] = (flat[i], flat[len(axes) + i])
    from nnbuild.frontend.onnx.quantized import ahead, holds, in_real, is_scaled

    mode, quant = call.text("mode", "constant"), call.form(x)[1]
    if not x.is_number and quant is not None and quant != WHOLE:
        value = in_real(value, quant, x.dtype)
    if mode == "constant" and is_scaled(call, x) and not holds(call, x, value):
        following = ahead(call, clamps=False)
        x = call.as_real(x) if following is None else call.converted(x, following.form, "float32")
    call.put(padded(call, x, around, mode, value))


def padded(call: Call, x: Value, around: Sequence[Pair], mode: str, value: float) -> Value:
    call.expect(mode in ("constant", "reflect", "edge", "wrap"), f"its mode is {mode!r}.")
    cut = [(max(0, -a), 1, n - max(0, -a) - max(0, -b)) for n, (a, b) in zip(x.shape, around, strict=True)]
    call.expect(min(count for _, _, count in cut) > 0, f"its pads {list(around)} remove all of its input.")
    x = part(call, x, cut)
    grown = [(max(0, a), max(0, b)) for a, b in around]
    if not any(map(any, grown)):
        return x
    x, order = whole(call, x)
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, grown, strict=True))
    if mode == "constant":
        limit = float(np.finfo(np.float32).max)
        op: Pad | Pick = Pad(tuple(grown[i] for i in order), min(max(value, -limit), limit))
    else:
        places = [_borrowed(call, n, pair, mode) for n, pair in zip(x.shape, grown, strict=True)]
        op = Pick(tuple(places[i] for i in order))
    made = call.add(op, [x.name], form=call.form(x))
    return replace(x, name=made, view=stored(shape, order))


def _borrowed(call: Call, size: int, pair: Pair, mode: str) -> tuple[int, ...] | None:
    """The source index of each element of a longer axis."""
    if pair == (0, 0):
        return None
    call.expect(mode != "reflect" or size > 1 or not any(pair), "it reflects an axis of 1.")
    call.within_tables(size + sum(pair))
    at = np.arange(-pair[0], size + pair[1])
    if mode == "edge":
        at = np.clip(at, 0, size - 1)
    elif mode == "wrap":
        at = at % size
    else:
        at = np.abs((at + size - 1) % (2 * size - 2) - (size - 1)) if size > 1 else at * 0
    return tuple(int(i) for i in at)


def picked(call: Call, x: Value, axis: int, places: Sequence[int]) -> Value:
    """The elements at these indices of one axis."""
    call.within_tables(max(x.shape[axis], len(places)))
    if list(places) == list(range(x.shape[axis])):
        return x
    steps = {b - a for a, b in itertools.pairwise(places)}
    if len(steps) <= 1 and 0 not in steps:
        ranges = every(x.shape)
        ranges[axis] = (places[0], steps.pop() if steps else 1, len(places))
        return part(call, x, ranges)
    x, order = whole(call, x)
    made = call.add(Pick(tuple(tuple(places) if i == axis else None for i in order)), [x.name], form=call.form(x))
    shape = tuple(len(places) if i == axis else n for i, n in enumerate(x.shape))
    return replace(x, name=made, view=stored(shape, order))


def expand(call: Call) -> None:
    x, wanted = call.value(0), call.whole_numbers(1)
    try:
        shape = tuple(int(n) for n in np.broadcast_shapes(x.shape, wanted))
    except (ValueError, RuntimeError):  # the latter for too many axes
        raise call.error(f"{list(x.shape)} cannot be broadcast to {list(wanted)}.") from None
    call.put(repeated(call, x, shape))


def repeated(call: Call, x: Value, shape: Shape) -> Value:
    """Broadcasts axes of size 1 to the shape."""
    x = replace(x, view=View(x.view.atoms, ((),) * (len(shape) - len(x.view.axes)) + x.view.axes))
    times = tuple(m if n == 1 else 1 for n, m in zip(x.shape, shape, strict=True))
    call.expect(prod(shape) < LARGEST, f"its output {list(shape)} is too large.")
    if max(times, default=1) == 1:
        return x
    x, order = whole(call, x)
    made = call.add(Repeat(tuple(times[i] for i in order)), [x.name], form=call.form(x))
    return replace(x, name=made, view=stored(shape, order))


def tile(call: Call) -> None:
    x, counts = call.value(0), call.whole_numbers(1)
    call.expect(len(counts) == len(x.shape) and min(counts, default=1) > 0, f"it repeats {list(counts)} times.")
    call.expect(prod(counts) * prod(x.shape) < LARGEST, "its output is too large.")
    short = [n == 1 for n in x.shape]
    x = repeated(call, x, tuple(c if n == 1 else n for n, c in zip(x.shape, counts, strict=True)))
    for axis, count in enumerate(counts):
        if count > 1 and not short[axis]:
            x = picked(call, x, axis, list(range(x.shape[axis])) * count)
    call.put(x)


def depth_to_space(call: Call) -> None:
    """A reshape, a transpose and a reshape, none of which moves data until an operation needs it."""
    x, size = call.value(0), call.integer("blocksize", 0)
    call.expect(
        len(x.shape) == 4 and 0 < size < 2**12 and x.shape[1] % (size * size) == 0,
        f"blocks of {size} do not divide its input.",
    )
    n, channels, height, width = x.shape
    deep = channels // (size * size)
    mode = call.text("mode", "DCR")
    call.expect(mode in ("DCR", "CRD"), f"its mode is {mode!r}.")
    seen = (n, size, size, deep, height, width) if mode == "DCR" else (n, deep, size, size, height, width)
    x = as_shape(call, x, seen)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    x = replace(x, view=transposed(x.view, order))
    call.put(as_shape(call, x, (n, deep, height * size, width * size)))


def space_to_depth(call: Call) -> None:
    x, size = call.value(0), call.integer("blocksize", 0)
    fits = len(x.shape) == 4 and 0 < size < 2**12 and x.shape[2] % size == 0 and x.shape[3] % size == 0
    call.expect(fits, f"blocks of {size} do not divide its input.")
    n, channels, height, width = x.shape
    mode = call.text("mode", "DCR")
    call.expect(mode in ("DCR", "CRD"), f"its mode is {mode!r}.")
    x = as_shape(call, x, (n, channels, height // size, size, width // size, size))
    x = replace(x, view=transposed(x.view, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)))
    call.put(as_shape(call, x, (n, channels * size * size, height // size, width // size)))


def center(call: Call) -> None:
    """CenterCropPad."""
    x, wanted = call.value(0), call.whole_numbers(1)
    rank = len(x.shape)
    axes = [call.axis(a, rank) for a in call.integers("axes", range(rank))]
    call.expect(len(axes) == len(wanted) and min(wanted, default=1) > 0, "its sizes do not match its axes.")
    around = [(0, 0)] * rank
    for axis, size in zip(axes, wanted, strict=True):
        more = size - x.shape[axis]
        around[axis] = (more // 2, more - more // 2) if more > 0 else (-((-more) // 2), more + (-more) // 2)
    call.put(padded(call, x, around, "constant", 0.0))


def triangle(call: Call) -> None:
    """Trilu: sets elements beyond a diagonal to 0."""
    from nnbuild.frontend.onnx.arithmetic import chosen

    x, offset = call.value(0), call.whole_numbers(1)[0] if call.given(1) else 0
    call.expect(len(x.shape) >= 2, "it needs a matrix.")
    call.within_tables(prod(x.shape[-2:]))
    offset = max(-(2**20), min(2**20, offset))
    kept = np.ones(x.shape[-2:], bool)
    kept = np.triu(kept, offset) if call.integer("upper", 1) else np.tril(kept, offset)
    x = call.as_real(x) if x.is_number else x
    zero = np.zeros((), np.float32 if x.is_number else x.dtype)
    call.put(chosen(call, kept, x, zero))


def reversed_steps(call: Call) -> None:
    """ReverseSequence: reverses the first steps of every batch row."""
    x, lengths = call.value(0), call.whole_numbers(1)
    time, batch = (call.axis(call.integer(n, d), len(x.shape)) for n, d in (("time_axis", 0), ("batch_axis", 1)))
    call.expect(len(lengths) == x.shape[batch] and time != batch, "its lengths do not match its batch.")
    rows = []
    for index, length in enumerate(lengths):
        call.expect(0 <= length <= x.shape[time], f"a length of {length} is out of range.")
        ranges = every(x.shape)
        ranges[batch] = (index, 1, 1)
        row = part(call, x, ranges)
        rows.append(picked(call, row, time, [*reversed(range(length)), *range(length, x.shape[time])]))
    call.put(joined(call, rows, batch) if len(rows) <= MOST_COPIES else rows[0])


OPERATORS: dict[str, Callable[[Call], None]] = {
    "Identity": identity,
    "Dropout": identity,
    "Transpose": transpose,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Slice": slice_,
    "Split": split,
    "Concat": concat,
    "Pad": pad,
    "Expand": expand,
    "Tile": tile,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "CenterCropPad": center,
    "Trilu": triangle,
    "ReverseSequence": reversed_steps,
}
