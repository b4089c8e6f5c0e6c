"""Convolutions: images are stored channels last, whatever the file's order, and weights are transposed to match."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.frontend.onnx.weighted import mode_of
from nnbuild.model.graph import Array, Shape
from nnbuild.model.views import View, stored
from nnbuild.ops.base import Attributes, Pair
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layout import Value, arranged, index_of
from nnbuild.ops.pad import Pad
from nnbuild.ops.slice import Slice
from nnbuild.ops.windows import same_padding, spread, windows_along

Pairs = tuple[Pair, ...]
LARGEST = 2**15


def per_axis(call: Call, name: str, count: int, default: int = 1) -> tuple[int, ...]:
    found = call.integers(name) or (default,) * count
    fits = len(found) == count and all(0 < n < LARGEST for n in found)
    call.expect(fits, f"its option {name!r} is {list(found)} for {count} axes.")
    return found


def padding(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Pairs:
    """(before, after) for each axis, from `pads` or `auto_pad`."""
    mode, count = call.text("auto_pad", "NOTSET") or "NOTSET", len(sizes)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        found = [same_padding(*each) for each in zip(sizes, kernel, strides, dilation, strict=True)]
        return tuple(p if mode == "SAME_UPPER" else (p[1], p[0]) for p in found)
    call.expect(mode in ("NOTSET", "VALID"), f"its auto_pad is {mode!r}.")
    flat = call.integers("pads") if mode == "NOTSET" else ()
    flat = flat or (0,) * 2 * count
    call.expect(len(flat) == 2 * count and all(-LARGEST < n < LARGEST for n in flat), f"its pads are {list(flat)}.")
    return tuple(zip(flat[:count], flat[count:], strict=True))


def images(call: Call, value: Value) -> tuple[Value, str, Shape, Shape]:
    """Stores rows and columns first and channels last, in any channel order. Returns the value, its tensor viewed as
    [rows, columns, channels] (one row for one axis), and the axes it applies along."""
    shape = value.shape
    value = arranged(call, value, [0, *range(2, len(shape))])
    inner = (*((1,) if len(shape) == 3 else ()), *shape[2:], shape[1])
    outer = (shape[0],) if shape[0] > 1 else ()
    return value, call.seen(value.name, (*outer, *inner)), inner, outer


def pixels(shape: Shape) -> View:
    """[batch, channels, rows, columns …] stored with the channels last."""
    return stored(shape, (0, *range(2, len(shape)), 1))


def square(values: Sequence[int], fill: int) -> tuple[int, int]:
    """Extends one axis to two: a one-axis convolution has a single row."""
    return (values[0], values[1]) if len(values) == 2 else (fill, values[0])


def around(pads: Sequence[Pair]) -> tuple[Pair, Pair]:
    return (pads[0], pads[1]) if len(pads) == 2 else ((0, 0), pads[0])


def conv(call: Call) -> None:
    mode = mode_of(call, 1, 2)
    x, kernel = mode.inputs[0], mode.weights
    rank = len(x.shape)
    call.expect(3 <= rank <= 5 and kernel.ndim == rank, f"its input {list(x.shape)} does not have 1 to 3 spatial axes.")
    sizes, window = x.shape[2:], kernel.shape[2:]
    strides, dilation = (per_axis(call, name, rank - 2) for name in ("strides", "dilations"))
    groups = call.integer("group", 1)
    out, depth = kernel.shape[:2]
    fits = groups > 0 and depth * groups == x.shape[1] and out % groups == 0
    call.expect(fits, f"its weights {list(kernel.shape)} in {groups} groups do not match {x.shape[1]} channels.")
    call.expect(not call.has("kernel_shape") or call.integers("kernel_shape") == window, "its kernel_shape is wrong.")
    pads = padding(call, sizes, window, strides, dilation)
    x, pads = cropped(call, x, pads, mode.form)
    try:
        places = tuple(map(windows_along, x.shape[2:], window, strides, dilation, pads))
    except ValueError as error:
        raise call.error(str(error)) from None
    shape = (x.shape[0], out, *places)
    if rank == 5:
        made = volume(call, mode, x, kernel, np.arange(out), (strides, dilation, pads), groups)
        mode.finish(call, Value(made, pixels(shape), "float32"))
        return
    value, name, _, outer = images(call, x)
    order = index_of(value.view, 1)
    view = pixels(shape)
    windows = (square(strides, 1), square(dilation, 1), around(pads))
    if groups > 1 and depth == 1:
        turned = kernel.reshape(groups, out // groups, *square(window, 1)).transpose(2, 3, 0, 1)
        channels = np.arange(out).reshape(groups, -1)[order].reshape(-1)
        attributes: Attributes = DepthwiseConv2D(*windows, clamp=mode.clamp, once=mode.is_integer)
        turned = turned[:, :, order]
        view = _kept(view, value.view, out == groups)
        if out != groups and list(order) != list(range(groups)):
            value = arranged(call, value, [0, *range(2, rank), 1])
            raise call.unsupported("its channels are shuffled, and the depthwise convolution has a channel multiplier")
    else:
        if groups > 1 and list(order) != list(range(len(order))):
            value = arranged(call, value, [0, *range(2, rank), 1])
            name, order = call.seen(value.name, call.tensor(name).shape), np.arange(len(order))
        turned = kernel.reshape(out, depth, *square(window, 1)).transpose(2, 3, 1, 0)
        channels = np.arange(out)
        turned = turned[:, :, order] if groups == 1 else turned
        attributes = Conv2D(*windows, groups, clamp=mode.clamp, once=mode.is_integer)
    constants = mode.constants(turned, channels, 3)
    mode.finish(call, Value(call.add(attributes, [name], constants, mode.form, outer), view, "float32"))


def _kept(view: View, source: View, same: bool) -> View:
    """A depthwise convolution keeps shuffled channels in place."""
    if not same or len(source.axes[1]) < 2:
        return view
    own = source.axes[1]
    first = len(view.atoms) - 1
    atoms = (*view.atoms[:first], *(source.atoms[a] for a in sorted(own)))
    places = {a: first + i for i, a in enumerate(sorted(own))}
    axes = tuple(tuple(places[a] for a in own) if i == 1 else axis for i, axis in enumerate(view.axes))
    return View(atoms, axes)


def cropped(call: Call, x: Value, pads: Pairs, form: Form) -> tuple[Value, Pairs]:
    """Negative padding crops."""
    if all(min(pair) >= 0 for pair in pads):
        return x, pads
    from nnbuild.frontend.onnx.data_movement import part

    ranges = [(0, 1, n) for n in x.shape]
    for axis, (before, after) in enumerate(pads, 2):
        low, high = max(0, -before), max(0, -after)
        call.expect(low + high < x.shape[axis], f"its pads {list(pads)} remove all of its input.")
        ranges[axis] = (low, 1, x.shape[axis] - low - high)
    return part(call, x, ranges), tuple((max(0, b), max(0, a)) for b, a in pads)


def volume(
    call: Call,
    mode: Mode,
    x: Value,
    kernel: Array,
    channels: Array,
    windows: tuple[Sequence[int], Sequence[int], Pairs],
    groups: int,
) -> str:
    """Three axes: the depth slices of each output become channels of a two-axis convolution. `channels` gives the
    output of each of the kernel's."""
    strides, dilation, pads = windows
    value = arranged(call, x, [0, 2, 3, 4, 1])
    batch, depth, *sizes = x.shape
    form = call.form(value)
    name = call.seen(value.name, (batch, *sizes, depth))
    name = call.add(Pad(((0, 0), pads[0], (0, 0), (0, 0), (0, 0))), [name], form=form)
    places = (sizes[0] + sum(pads[0]) - spread(kernel.shape[2], dilation[0])) // strides[0] + 1
    steps, counts = (1, strides[0], 1, 1, 1), (batch, places, *sizes[1:], depth)
    slices = [
        call.add(Slice((0, i * dilation[0], 0, 0, 0), steps, counts), [name], form=form) for i in range(kernel.shape[2])
    ]
    if len(slices) > 1 and groups > 1:  # the slices of each group together
        slices = [call.seen(each, (*counts[:4], groups, depth // groups)) for each in slices]
    joined = slices[0] if len(slices) == 1 else call.add(Concatenate(4 + (groups > 1)), slices, form=form)
    joined = call.seen(joined, (*counts[:4], depth * len(slices)))
    turned = kernel.transpose(3, 4, 2, 1, 0).reshape(*kernel.shape[3:], -1, kernel.shape[0])
    plane = ((strides[1], strides[2]), (dilation[1], dilation[2]), (pads[1], pads[2]))
    op = Conv2D(*plane, groups, clamp=mode.clamp, once=mode.is_integer)
    return call.add(op, [joined], mode.constants(turned, channels, 3), mode.form, (batch, places))


OPERATORS: dict[str, Callable[[Call], None]] = {"Conv": conv}
