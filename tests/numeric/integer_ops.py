"""Integer operators over whole tensors, in plain numpy, on top of `nnbuild.numeric`.

Pure functions: integers in, integers out. Convolutions return the accumulator, so that the caller chooses the
requantization.
"""

from __future__ import annotations

import numpy as np

from nnbuild.numeric import rounding
from nnbuild.numeric.rounding import Ints

Pair = tuple[int, int]


def same_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int, int]:
    """Output size and the padding before and after, as SAME distributes it."""
    out = -(-size // stride)
    total = max((out - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return out, total // 2, total - total // 2


def valid_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int, int]:
    return (size - (window - 1) * dilation - 1) // stride + 1, 0, 0


def windows(x: Ints, window: Pair, strides: Pair, dilations: Pair, same: bool, fill: int) -> Ints:
    """(batch, out rows, out columns, window rows, window columns, channels) of a padded image."""
    pads, outs = [(0, 0)], []
    for axis in (0, 1):
        rule = same_padding if same else valid_padding
        out, before, after = rule(x.shape[axis + 1], window[axis], strides[axis], dilations[axis])
        outs.append(out)
        pads.append((before, after))
    padded = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    rows = np.arange(outs[0])[:, None] * strides[0] + np.arange(window[0]) * dilations[0]
    columns = np.arange(outs[1])[:, None] * strides[1] + np.arange(window[1]) * dilations[1]
    taken = padded[:, rows][:, :, :, columns]  # batch, out rows, window rows, out columns, window columns, channels
    return taken.transpose(0, 1, 3, 2, 4, 5)


def integer_conv2d(
    x: Ints, weights: Ints, bias: Ints | None, zero: int, strides: Pair, dilations: Pair, same: bool
) -> Ints:
    """Weights are (outputs, rows, columns, inputs / groups). Padding holds the zero point."""
    outputs, rows, columns, depth = weights.shape
    taken = windows(x, (rows, columns), strides, dilations, same, zero) - zero
    groups = x.shape[3] // depth
    size = outputs // groups
    parts = [
        np.einsum("bijrck,orck->bijo", taken[..., g * depth : (g + 1) * depth], weights[g * size : (g + 1) * size])
        for g in range(groups)
    ]
    acc = np.concatenate(parts, axis=3)
    return acc if bias is None else acc + bias


def integer_depthwise(
    x: Ints, weights: Ints, bias: Ints | None, zero: int, strides: Pair, dilations: Pair, same: bool
) -> Ints:
    """Weights are (1, rows, columns, inputs * multiplier)."""
    _, rows, columns, outputs = weights.shape
    taken = windows(x, (rows, columns), strides, dilations, same, zero) - zero
    repeated = np.repeat(taken, outputs // x.shape[3], axis=5)
    acc = np.einsum("bijrco,rco->bijo", repeated, weights[0])
    return acc if bias is None else acc + bias


def integer_transpose_conv(
    x: Ints, weights: Ints, bias: Ints | None, zero: int, strides: Pair, same: bool, out_shape: Pair
) -> Ints:
    """Weights are (outputs, rows, columns, inputs). Every input element adds its window to the output."""
    outputs, rows, columns, _ = weights.shape
    spread = np.einsum("bijk,orck->bijrco", x - zero, weights)
    height, width = ((n - 1) * s + w for n, s, w in zip(x.shape[1:3], strides, (rows, columns), strict=True))
    full = np.zeros(
        (x.shape[0], max(height, out_shape[0]) + rows, max(width, out_shape[1]) + columns, outputs), np.int64
    )
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            top, left = i * strides[0], j * strides[1]
            full[:, top : top + rows, left : left + columns] += spread[:, i, j]
    top = _transpose_padding(x.shape[1], rows, strides[0], out_shape[0], same)
    left = _transpose_padding(x.shape[2], columns, strides[1], out_shape[1], same)
    acc = full[:, top : top + out_shape[0], left : left + out_shape[1]]
    return acc if bias is None else acc + bias


def _transpose_padding(size: int, window: int, stride: int, out: int, same: bool) -> int:
    """The forward convolution's padding, from the output back to the input."""
    return same_padding(out, window, stride)[1] if same else 0


def integer_fully_connected(x: Ints, weights: Ints, bias: Ints | None, in_zero: int, weight_zero: int) -> Ints:
    acc = (x.reshape(-1, weights.shape[1]) - in_zero) @ (weights - weight_zero).T
    return acc if bias is None else acc + bias


def integer_average_pool(x: Ints, window: Pair, strides: Pair, same: bool) -> Ints:
    """Padding does not count."""
    total = windows(x, window, strides, (1, 1), same, 0).sum(axis=(3, 4))
    count = windows(np.ones_like(x), window, strides, (1, 1), same, 0).sum(axis=(3, 4))
    return rounding.rounding_mean(total, count)


def integer_max_pool(x: Ints, window: Pair, strides: Pair, same: bool) -> Ints:
    return np.asarray(windows(x, window, strides, (1, 1), same, -(1 << 31)).max(axis=(3, 4)))


def resize_nearest(x: Ints, size: Pair) -> Ints:
    rows = np.arange(size[0]) * x.shape[1] // size[0]
    columns = np.arange(size[1]) * x.shape[2] // size[1]
    return np.asarray(x[:, rows][:, :, columns])


def _bilinear_axis(size: int, out: int, align_corners: bool, half_pixel: bool) -> tuple[Ints, Ints, Ints]:
    """Lower and upper source index of each output index, and the upper one's share in 1024ths."""
    step = (1024 * size + out // 2) // out
    if align_corners and out > 1:
        step = (1024 * (size - 1) + (out - 1) // 2) // (out - 1)
    position = np.arange(out, dtype=np.int64) * step + (step // 2 - 512 if half_pixel else 0)
    towards_zero = np.sign(position) * (np.abs(position) // 1024)
    lower = np.maximum(towards_zero, 0)
    upper = np.minimum((position + 1023) // 1024, size - 1)
    return lower, upper, position - 1024 * lower


def integer_bilinear(x: Ints, size: Pair, align_corners: bool, half_pixel: bool) -> Ints:
    """Interpolation in 1024ths along both axes, rounded once, halves away from zero."""
    top, bottom, row_share = _bilinear_axis(x.shape[1], size[0], align_corners, half_pixel)
    left, right, column_share = _bilinear_axis(x.shape[2], size[1], align_corners, half_pixel)
    rows, columns = row_share[None, :, None, None], column_share[None, None, :, None]
    total = (
        x[:, top][:, :, left] * (1024 - rows) * (1024 - columns)
        + x[:, bottom][:, :, left] * rows * (1024 - columns)
        + x[:, top][:, :, right] * (1024 - rows) * columns
        + x[:, bottom][:, :, right] * rows * columns
    )
    return rounding.rounding_shift(total, 20)


def strided_slice(x: Ints, begin: Ints, end: Ints, strides: Ints, masks: tuple[int, int, int]) -> Ints:
    """Masks are the options' begin, end and shrink masks, one bit an axis."""
    index: list[int | slice] = []
    for axis, (low, high, step) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        if masks[2] >> axis & 1:
            index.append(low)
        else:
            index.append(slice(None if masks[0] >> axis & 1 else low, None if masks[1] >> axis & 1 else high, step))
    return np.asarray(x[tuple(index)])
