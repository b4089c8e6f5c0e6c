"""What the made-up device reads and computes: descriptors of 20 words, constants as bias, shifts, weights."""

import numpy as np

from nnbuild.numeric.arithmetic import Arithmetic, added, mean, requant
from nnbuild.offload.compute import sums, windows

OPERATIONS = ["conv2d", "depthwise_conv2d", "dense", "max_pool", "average_pool", "add"]
SPEC = Arithmetic(acc_bits=24, scale="pow2", rounding=("floor", "none"), mean="floor", spare=8)


def pack(task):
    """Weights as [out][kh][kw][in], or [kh][kw][channels] of a depthwise convolution."""
    if task.weights is None:
        return b""
    out = task.output.shape[2]
    weights = task.weights if task.weights.ndim == 4 else task.weights.reshape(*task.window, -1, out)
    weights = task.weights if task.operation == "depthwise_conv2d" else weights.transpose(3, 0, 1, 2)
    parts = [np.asarray(task.bias, "<i4").tobytes(), np.ascontiguousarray(weights, np.int8).tobytes()]
    return b"".join(parts)


def describe(task, addresses):
    first, out = task.inputs[0], task.output
    second = task.inputs[-1]
    shift = [int(-np.ravel(scale.shift)[0]) for scale in task.scales]
    zero = [int(np.ravel(scale.multiplier)[0] == 0) for scale in task.scales]
    shift = [127 if none else each for each, none in zip(shift, zero, strict=True)]
    shift += [0] * (3 - len(shift))
    words = [
        OPERATIONS.index(task.operation) + 0xA0,
        addresses.tag,
        addresses.inputs[0],
        addresses.inputs[-1],
        addresses.output,
        addresses.constants,
        first.shape[0] | first.shape[1] << 16,
        first.shape[2] | out.shape[2] << 16,
        out.shape[0] | out.shape[1] << 16,
        first.row,
        first.pixel | out.pixel << 16,
        out.row,
        second.row | second.pixel << 16 if second.row < 1 << 16 else 0,
        task.window[0] | task.window[1] << 16,
        task.strides[0] | task.strides[1] << 16,
        task.padding[0][0] | task.padding[1][0] << 16,
        (task.bounds[0] & 0xFF) | (task.bounds[1] & 0xFF) << 8,
        (shift[0] & 0xFF) | (shift[1] & 0xFF) << 8 | (shift[2] & 0xFF) << 16,
        task.spare,
    ]
    checked = np.array(words, "<u4")
    return checked.tobytes() + np.array([np.bitwise_xor.reduce(checked)], "<u4").tobytes()


def cycles(task):
    rows, columns, channels = task.output.shape
    places = rows * columns * channels
    kh, kw = task.window
    if task.operation in ("conv2d", "dense"):
        return 20 + places * kh * kw * task.inputs[0].shape[2] / 16
    return 20 + places * kh * kw / 4


def compute(task, arrays):
    if task.operation == "add":
        scales = [(int(np.ravel(s.multiplier)[0]), int(np.ravel(s.shift)[0])) for s in task.scales]
        result = added(arrays[0], arrays[1], SPEC, scales)
    elif task.operation == "max_pool":
        result = windows(task, arrays[0]).max(axis=(3, 4))
    elif task.operation == "average_pool":
        parts = windows(task, arrays[0])
        result = mean(parts.sum(axis=(3, 4)), parts.shape[3] * parts.shape[4], "floor")
    else:
        result = requant(sums(task, arrays[0]), SPEC, task.scales[0].multiplier, task.scales[0].shift)
    return (np.clip(result, *task.bounds).astype(np.int8),)
