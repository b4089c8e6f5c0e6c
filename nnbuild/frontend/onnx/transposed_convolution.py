"""Transposed convolutions; those in groups or over three axes as plain ones, one for each place between the input's
elements. Col2Im is one whose weights are ones and zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import mul

import numpy as np

from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.convolution import LARGEST, Pairs, around, cropped, images, per_axis, pixels, square, volume
from nnbuild.frontend.onnx.data_movement import as_shape, part
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.frontend.onnx.weighted import mode_of
from nnbuild.model.graph import Array, Shape
from nnbuild.model.views import transposed
from nnbuild.ops.base import Attributes, Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layout import Value, arranged, index_of
from nnbuild.ops.windows import spread


def conv_transpose(call: Call) -> None:
    mode = mode_of(call, 1, 2, 1)
    x, kernel = mode.inputs[0], mode.weights
    rank = len(x.shape)
    call.expect(rank == kernel.ndim, f"its input has {rank} axes, its weights {kernel.ndim}.")
    call.expect(rank in (3, 4, 5), f"nnbuild supports it on one to three axes, not {rank - 2}.", "Use at most three.")
    groups = call.integer("group", 1)
    channels, share = kernel.shape[:2]
    fits = groups > 0 and channels == x.shape[1] and channels % groups == 0
    call.expect(fits, f"its weights {list(kernel.shape)} do not match {x.shape[1]} channels.")
    window, count = kernel.shape[2:], rank - 2
    strides, dilation = (per_axis(call, name, count) for name in ("strides", "dilations"))
    size, crop = _spread_over(call, x.shape[2:], window, strides, dilation)
    if groups > 1 or rank == 5:
        axes = tuple(map(_Phases.of, x.shape[2:], window, strides, dilation, size, crop))
        mode.finish(call, _by_phases(call, mode, axes, groups))
        return
    value, name, _, outer = images(call, x)
    turned = kernel.reshape(channels, share, *square(window, 1)).transpose(2, 3, 1, 0)[..., index_of(value.view, 1)]
    op = Conv2DTranspose(
        square(size, 1),
        square(strides, 1),
        square(dilation, 1),
        square(crop, 0),
        clamp=mode.clamp,
        once=mode.is_integer,
    )
    constants = mode.constants(turned, np.arange(share), 2)
    made = call.add(op, [name], constants, mode.form, outer)
    mode.finish(call, Value(made, pixels((x.shape[0], share, *size)), "float32"))


@dataclass(frozen=True)
class _Phases:
    """One axis of a transposed convolution as `stride` plain ones of `taps` taps, whose results alternate. They begin
    with `extra` elements too many."""

    stride: int
    dilation: int
    taps: int
    pads: Pair
    count: int
    extra: int
    size: int

    @classmethod
    def of(cls, n: int, window: int, stride: int, dilation: int, size: int, crop: int) -> _Phases:
        taps, first = -(-spread(window, dilation) // stride), crop // stride
        count = -(-(crop + size) // stride) - first
        pads = (taps - 1 - first, first + count - n)
        return cls(stride, dilation, taps, pads, count, crop - first * stride, size)

    def split(self, kernel: Array, axis: int) -> Array:
        """The weights along the axis as [taps, phases]."""
        spaced = np.zeros((*kernel.shape[:axis], self.taps * self.stride, *kernel.shape[axis + 1 :]), kernel.dtype)
        places = np.arange(kernel.shape[axis]) * self.dilation
        spaced[(slice(None),) * axis + (places,)] = kernel
        shape = (*kernel.shape[:axis], self.taps, self.stride, *kernel.shape[axis + 1 :])
        return np.flip(spaced.reshape(shape), axis)


def _by_phases(call: Call, mode: Mode, axes: tuple[_Phases, ...], groups: int) -> Value:
    """A transposed convolution in groups, or over three axes: plain ones of the input, one for each place between its
    elements."""
    x, pads = cropped(call, mode.inputs[0], tuple(axis.pads for axis in axes), mode.form)
    channels, share = mode.weights.shape[:2]
    kernel = mode.weights.reshape(groups, channels // groups, share, *mode.weights.shape[2:])
    for place, axis in enumerate(axes):
        kernel = axis.split(kernel, 3 + 2 * place)
    count, phases = len(axes), prod(axis.stride for axis in axes)
    made = _all_phases(call, mode, x, kernel, np.repeat(np.arange(share * groups), phases), pads)
    counts, steps = tuple(axis.count for axis in axes), tuple(axis.stride for axis in axes)
    whole = Value(made, pixels((x.shape[0], share * groups * phases, *counts)), "float32")
    whole = as_shape(call, whole, (x.shape[0], share * groups, *steps, *counts))
    order = (0, 1, *(place for i in range(2, 2 + count) for place in (i + count, i)))
    whole = replace(whole, view=transposed(whole.view, order))
    whole = as_shape(call, whole, (x.shape[0], share * groups, *map(mul, counts, steps)))
    ranges = [(0, 1, n) for n in whole.shape[:2]] + [(axis.extra, 1, axis.size) for axis in axes]
    return whole if whole.shape[2:] == tuple(axis.size for axis in axes) else part(call, whole, ranges)


def _all_phases(call: Call, mode: Mode, x: Value, kernel: Array, outputs: Array, pads: Pairs) -> str:
    """Plain convolutions by kernels [groups, in, out, taps, phases, taps, phases …]; `outputs` gives the transposed
    convolution's output for each of theirs."""
    (groups, each), count = kernel.shape[:2], len(pads)
    taps, phases = range(3, 3 + 2 * count, 2), range(4, 4 + 2 * count, 2)
    window, ones = tuple(kernel.shape[axis] for axis in taps), (1,) * count
    if count == 3:
        turned = kernel.transpose(0, 2, *phases, 1, *taps).reshape(-1, each, *window)
        return volume(call, mode, x, turned, outputs, (ones, ones, pads), groups)
    windows, window = (square(ones, 1), square(ones, 1), around(pads)), square(window, 1)
    _, name, _, outer = images(call, arranged(call, x, [0, *range(2, 2 + count), 1]))
    if each == 1:
        turned = kernel.transpose(*taps, 0, 2, *phases, 1).reshape(*window, groups, -1)
        attributes: Attributes = DepthwiseConv2D(*windows, clamp=mode.clamp, once=mode.is_integer)
    else:
        turned = kernel.transpose(*taps, 1, 0, 2, *phases).reshape(*window, each, -1)
        attributes = Conv2D(*windows, groups, clamp=mode.clamp, once=mode.is_integer)
    return call.add(attributes, [name], mode.constants(turned, outputs, 3), mode.form, outer)


def _spread_over(
    call: Call, sizes: Shape, window: Shape, strides: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The size of the output, and how much of its full extent is cropped before it."""
    count = len(sizes)
    extra = call.integers("output_padding") or (0,) * count
    call.expect(len(extra) == count and min(extra) >= 0, f"its output_padding is {list(extra)}.")
    full = [
        s * (n - 1) + spread(k, d) + e for n, k, s, d, e in zip(sizes, window, strides, dilation, extra, strict=True)
    ]
    mode = call.text("auto_pad", "NOTSET") or "NOTSET"
    wanted = call.integers("output_shape")[-count:] if call.has("output_shape") else None
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(n * s for n, s in zip(sizes, strides, strict=True))
    if wanted is not None:
        call.expect(len(wanted) == count and min(wanted) > 0 and max(wanted) < LARGEST, "its output_shape is wrong.")
        total = [f - w for f, w in zip(full, wanted, strict=True)]
        crop = [max(t, 0) // 2 if mode != "SAME_LOWER" else max(t, 0) - max(t, 0) // 2 for t in total]
        return tuple(wanted), tuple(crop)
    flat = call.integers("pads") if mode == "NOTSET" else ()
    flat = flat or (0,) * 2 * count
    before, after = flat[:count], flat[count:]
    fits = len(flat) == 2 * count and min(before) >= 0 and max(map(abs, flat)) < LARGEST
    call.expect(fits, f"its pads are {list(flat)}.")
    # Of negative ones, as tf2onnx writes them, the output is longer than what its input reaches.
    size = tuple(f - first - last for f, first, last in zip(full, before, after, strict=True))
    call.expect(min(size) > 0, f"its pads {list(flat)} remove all of its output.")
    return size, tuple(before)


def col2im(call: Call) -> None:
    """Sums of blocks where they lie in an image; blocks side by side are only moved."""
    x, size, block = call.value(0), call.whole_numbers(1), call.whole_numbers(2)
    count, taps = len(size), prod(block)
    fits = len(x.shape) == 3 and len(block) == count in (2, 3) and min(size) > 0 and min(block) > 0
    call.expect(fits and x.shape[1] % taps == 0, f"its blocks {list(block)} do not match {list(x.shape)}.")
    strides, dilation = (per_axis(call, name, count) for name in ("strides", "dilations"))
    pads = call.integers("pads") or (0,) * 2 * count
    call.expect(len(pads) == 2 * count and min(pads) >= 0 and max(pads) < LARGEST, f"its pads are {list(pads)}.")
    each = zip(size, block, strides, dilation, pads[:count], pads[count:], strict=True)
    counts = tuple((n - spread(b, d) + first + last) // s + 1 for n, b, s, d, first, last in each)
    call.expect(min(counts) > 0 and prod(counts) == x.shape[2], f"it needs {prod(counts)} blocks, not {x.shape[2]}.")
    batch, channels = x.shape[0], x.shape[1] // taps
    if block == strides and not any(pads) and size == tuple(map(mul, counts, block)) and max(dilation) == 1:
        x = as_shape(call, x, (batch, channels, *block, *counts))
        x = replace(x, view=transposed(x.view, (0, 1, *(p for i in range(2, 2 + count) for p in (i + count, i)))))
        call.put(as_shape(call, x, (batch, channels, *size)))
        return
    call.within_tables(channels * taps * taps)
    ones = np.tile(np.eye(taps, dtype=np.float32), (channels, 1)).reshape(-1, 1, *block)
    mode = Mode((as_shape(call, call.as_real(x), (batch, x.shape[1], *counts)),), FLOAT, weights=ones)
    call.put(_by_phases(call, mode, tuple(map(_Phases.of, counts, block, strides, dilation, size, pads)), channels))


OPERATORS: dict[str, Callable[[Call], None]] = {"ConvTranspose": conv_transpose, "Col2Im": col2im}
