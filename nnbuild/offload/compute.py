"""Helpers with which devices' files and their tests compute tasks: sums and windows of [height, width, channels]."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.offload.task import Task


def windows(task: Task, x: Array, fill: int = 0) -> Ints:
    """The values under each window, as [rows, columns, channels, kernel height, kernel width]."""
    (top, bottom), (left, right) = task.padding
    padded = np.pad(ints(x), ((top, bottom), (left, right), (0, 0)), constant_values=fill)
    seen = np.lib.stride_tricks.sliding_window_view(padded, task.window, axis=(0, 1))
    rows, columns, _ = task.output.shape
    return np.asarray(seen[:: task.strides[0], :: task.strides[1]][:rows, :columns])


def sums(task: Task, x: Array) -> Ints:
    """The sums of a convolution or dense layer with bias; the zero point is subtracted from the inputs."""
    assert task.weights is not None
    if task.operation == "dense":
        total = (ints(x).reshape(-1) - task.in_zeros[0]) @ ints(task.weights)
        total = total.reshape(1, 1, -1)
    else:
        seen = windows(task, x, task.in_zeros[0]) - task.in_zeros[0]
        by = "yxcij,ijc->yxc" if task.operation == "depthwise_conv2d" else "yxcij,ijco->yxo"
        total = np.einsum(by, seen, ints(task.weights))
    return np.asarray(total if task.bias is None else total + task.bias)
