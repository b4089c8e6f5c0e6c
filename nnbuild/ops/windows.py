"""Sliding windows over rows and columns: the arithmetic of convolutions and pools."""

from __future__ import annotations

from math import ceil

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.ops.base import Pair, expect

Padding = tuple[Pair, Pair]
"""((top, bottom), (left, right))"""

NO_PADDING: Padding = ((0, 0), (0, 0))


def spread(kernel: int, dilation: int) -> int:
    """The inputs from the first to the last tap of a dilated kernel."""
    return (kernel - 1) * dilation + 1


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> Pair:
    """TensorFlow's "same": ceil(size / stride) outputs; an odd pad goes after."""
    total = max((ceil(size / stride) - 1) * stride + spread(kernel, dilation) - size, 0)
    return total // 2, total - total // 2


def windows_along(size: int, kernel: int, stride: int, dilation: int, pad: Pair) -> int:
    places = (size + sum(pad) - spread(kernel, dilation)) // stride + 1
    expect(places > 0, f"a window of {spread(kernel, dilation)} does not fit into {size} inputs padded by {pad}.")
    return places


def sliding(x: Array, kernel: Pair, strides: Pair, dilation: Pair, padding: Padding, fill: float) -> Array:
    """[batch, height, width, channels] -> [batch, rows, columns, channels, kernel height, kernel width]."""
    (top, bottom), (left, right) = padding
    if any((top, bottom, left, right)):
        x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=x.dtype.type(fill))
    reach = (spread(kernel[0], dilation[0]), spread(kernel[1], dilation[1]))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))
    picked: Array = view[:, :: strides[0], :: strides[1], :, :: dilation[0], :: dilation[1]]
    return picked
