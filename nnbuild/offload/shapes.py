"""The quantities of an operation that a device may limit, and the form in which a tensor lies in its memory."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.model.graph import Shape
from nnbuild.offload.device import Operator
from nnbuild.offload.task import Layout, Task

Shape3 = tuple[int, int, int]

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
"""What a table may limit -> what it means. Larger ones of those that a task reads or writes are cut into tasks."""

CUT = {"in_height": 0, "out_height": 0, "in_width": 1, "out_width": 1, "out_channels": 2}
"""The axis along which a task can be cut to keep to a limit."""


def quantities(task: Task) -> Mapping[str, int]:
    """All of a task. A padding without rows counts as 0."""
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


def beyond(task: Task, operator: Operator) -> dict[str, tuple[int, int]]:
    """The quantities that are outside their limits -> (the quantity, the limit it breaks)."""
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
    """A whole tensor without gaps between its pixels, but for those that fill a pixel up."""
    pixel = pitch(shape[2], multiple)
    return Layout(shape, shape[1] * pixel, pixel)


def size_of(layout: Layout) -> int:
    return layout.shape[0] * layout.row
