"""Quantities of an operation that a device may limit, and layouts of tensors in its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import Ints
from nnbuild.offload.device import Operator
from nnbuild.offload.task import Layout, Task

Shape3 = tuple[int, int, int]
Split = tuple[int, ...]
"""Channel groups of a tensor, each starting at pixel alignment: one group, except for concatenated tensors."""

QUANTITIES = {
    "kernel_height": "rows of the window",
    "kernel_width": "columns of the window",
    "stride_height": "rows from window to window",
    "stride_width": "columns from window to window",
    "pad": "rows or columns of padding on any side",
    "in_height": "rows that a task reads",
    "in_width": "columns that a task reads",
    "in_channels": "channels that a task reads",
    "out_height": "rows that a task writes",
    "out_width": "columns that a task writes",
    "out_channels": "channels that a task writes",
    "taps": "products in a sum",
    "window": "places in a window",
}
"""What a table may limit -> its meaning. Tasks that exceed a limit on what they read or write are divided."""

CUT = {"in_height": 0, "out_height": 0, "in_width": 1, "out_width": 1, "out_channels": 2}
"""The axis along which a task can be divided to keep to a limit."""


def quantities(task: Task) -> Mapping[str, int]:
    """All quantities of a task; no padding counts as 0."""
    height, width, channels = task.inputs[0].shape
    kh, kw = task.window
    across = task.operation in ("conv2d", "dense")
    return {
        "kernel_height": kh,
        "kernel_width": kw,
        "stride_height": task.strides[0],
        "stride_width": task.strides[1],
        "pad": max(max(pair) for pair in task.padding),
        "in_height": height,
        "in_width": width,
        "in_channels": channels,
        "out_height": task.output.shape[0],
        "out_width": task.output.shape[1],
        "out_channels": task.output.shape[2],
        "taps": kh * kw * (channels if across else 1),
        "window": kh * kw,
    }


def violations(task: Task, operator: Operator) -> dict[str, tuple[int, int]]:
    """Quantity outside its limits -> (its value, the limit it breaks)."""
    found = {}
    for name, value in quantities(task).items():
        low, high = operator.limits.get(name, (value, value))
        if not low <= value <= high:
            found[name] = (value, low if value < low else high)
    return found


def as_image(shape: Shape) -> Shape3 | None:
    """A tensor as rows, columns and channels; None where it has more axes."""
    if len(shape) > 3:
        return None
    padded = (1, 1, 1, *shape)[-3:]
    return padded[0], padded[1], padded[2]


def pitch(channels: int, multiple: int) -> int:
    """Bytes from pixel to pixel."""
    return -(-channels // multiple) * multiple


def laid_out(shape: Shape3, multiple: int) -> Layout:
    """A whole tensor; pixels are contiguous except for their padding."""
    pixel = pitch(shape[2], multiple)
    return Layout(shape, shape[1] * pixel, pixel)


def extent(split: Split, multiple: int) -> int:
    """Channels including the gaps between groups."""
    return sum(pitch(count, multiple) for count in split[:-1]) + split[-1]


def merge_splits(splits: Iterable[Split], multiple: int) -> Split:
    """Groups of the concatenation; groups without a gap between them become one."""
    found: list[int] = []
    for count in (count for split in splits for count in split):
        if found and found[-1] % multiple == 0:
            found[-1] += count
        else:
            found.append(count)
    return tuple(found)


def begins(split: Split, multiple: int) -> list[int]:
    """Offset of each group in a pixel."""
    return [sum(pitch(count, multiple) for count in split[:at]) for at in range(len(split))]


def spread(values: Array, axis: int, split: Split, multiple: int) -> Ints:
    """Per-channel values, with zeros in the gaps between groups."""
    values = np.asarray(values, np.int64)
    if len(split) == 1:
        return values
    shape = list(values.shape)
    shape[axis] = extent(split, multiple)
    places = [at + i for at, count in zip(begins(split, multiple), split, strict=True) for i in range(count)]
    found = np.zeros(shape, np.int64)
    np.moveaxis(found, axis, 0)[places] = np.moveaxis(values, axis, 0)
    return found
