"""The systolic accelerator as nnbuild sees it: its registers and descriptors, how constants are packed, what a task
costs, and what it computes, exact in every bit.

`generate.py` makes the SystemVerilog package and the C header of the tables below.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nnbuild.base import paths
from nnbuild.numeric.real_scale import IntegerScale, apply_integer_scale
from nnbuild.numeric.rounding import Ints, ints, requantize, rounding_mean, saturate
from nnbuild.offload.task import Addresses, Scaling, Task
from nnbuild.ops.windows import sliding

Bytes = NDArray[np.int8]

LANES = 8
"""Channels in a word, rows and columns of the array: 8 or 16, the parameter of the hardware."""
SCRATCH_BYTES = 1 << 16
GROUP = 256
"""Pixels whose sums the accumulators hold."""
PARAMETER_WORDS = 9
"""Words a block of channels: four of biases, four of multipliers, one of shifts."""
FLIGHT = 2
"""Cycles after which a pixel's sum may be added to again."""
DEPTH = 8
"""Stages from the start of a task to the end of its last pixel."""
MEMORY_LATENCY = 8
"""Cycles until memory answers."""

REGISTERS = {
    "id": 0x00,
    "version": 0x04,
    "ctrl": 0x08,
    "status": 0x0C,
    "doorbell": 0x10,
    "done": 0x14,
    "tag": 0x18,
    "irq": 0x1C,
    "watchdog": 0x20,
    "head": 0x24,
    "span": 0x28,
    "idle": 0x2C,
    "array": 0x30,
    "stall": 0x34,
    "mac": 0x38,
    "dma": 0x3C,
    "empty": 0x40,
    "cycles": 0x44,
    "reads": 0x48,
    "writes": 0x4C,
}
"""Name -> offset; all have 32 bits."""
ID = 0x53595354
VERSION = 1
QUEUE = 4

BITS = {
    "ctrl": {"enable": (0, 1), "irq_enable": (1, 1), "reset": (2, 1), "clear": (3, 1)},
    "status": {
        "busy": (0, 1),
        "full": (1, 1),
        "irq": (2, 1),
        "error": (4, 4),
        "queued": (8, 4),
        "array_busy": (12, 1),
        "dma_busy": (13, 1),
    },
    "tag": {"done": (0, 16), "failed": (16, 16)},
    "irq": {"done": (0, 1), "error": (1, 1)},
    "head": {"tag": (0, 16), "valid": (16, 1)},
}
"""Register -> name -> (lowest bit, number of bits)."""

ERRORS = {
    "none": 0,
    "task": 1,
    "descriptor": 2,
    "overflow": 3,
    "watchdog": 4,
    "constants": 5,
    "address": 6,
    "memory": 7,
}
OPERATIONS = {"conv": 1, "depthwise": 2, "max_pool": 3, "average_pool": 4, "add": 5, "load": 6, "store": 7}
FLAGS = {"after_array": 0, "after_dma": 1, "interrupt": 2, "once": 3}
"""Flag -> its bit."""

DESCRIPTOR = (
    ("operation", 8),
    ("flags", 8),
    ("tag", 16),
    ("version", 8),
    ("zero_in", 8),
    ("zero_out", 8),
    ("low", 8),
    ("source", 16),
    ("destination", 16),
    ("memory", 32),
    ("in_height", 16),
    ("in_width", 16),
    ("height", 16),
    ("width", 16),
    ("in_blocks", 16),
    ("out_blocks", 16),
    ("kernel_height", 8),
    ("kernel_width", 8),
    ("stride_y", 8),
    ("stride_x", 8),
    ("pad_top", 8),
    ("pad_left", 8),
    ("group_rows", 16),
    ("high", 8),
    ("reserved", 40),
    ("source2", 16),
    ("source_row", 16),
    ("source_pixel", 16),
    ("destination_row", 16),
    ("destination_pixel", 16),
    ("source2_row", 16),
    ("source2_pixel", 16),
    ("constants_crc", 32),
    ("crc", 32),
)
"""Fields of a descriptor from its first byte on, little endian: 64 bytes. Addresses and pitches count words of LANES
bytes, but `memory` counts bytes."""


def blocks(channels: int) -> int:
    return ceil(channels / LANES)


def pack(task: Task) -> bytes:
    """For each block of output channels: biases, multipliers, shifts; then a block of weights for each tap."""
    if task.operation not in ("conv2d", "dense", "depthwise_conv2d", "add"):
        return b""
    weights, bias, scale = _weights(task), _bias(task), task.scales[-1]
    count = weights.shape[0]
    multiplier, shift = _channels(scale.multiplier, task), _channels(scale.shift, task)
    if scale.rule == "once" and scale.away is not None:
        shift = shift | _channels(scale.away, task).astype(np.int64) << 7
    parts = []
    for block in range(count):
        own = slice(block * LANES, (block + 1) * LANES)
        parts += [bias[own].astype("<i4").tobytes(), multiplier[own].astype("<i4").tobytes()]
        parts += [(shift[own] & 255).astype(np.uint8).tobytes(), weights[block].tobytes()]
    return b"".join(parts)


def describe(task: Task, addresses: Addresses) -> bytes:
    """The descriptor of 64 bytes, its CRC over the first 60 in the last four."""
    values = _fields(task, addresses)
    word, at = 0, 0
    for name, bits in DESCRIPTOR:
        word |= (values.get(name, 0) & ((1 << bits) - 1)) << at
        at += bits
    body = word.to_bytes(64, "little")[:60]
    return body + zlib.crc32(body).to_bytes(4, "little")


def cycles(task: Task) -> int:
    """What a task takes in a stream of tasks, its descriptor fetched while others run."""
    height, width, channels = task.output.shape
    if task.operation in ("load", "store"):
        words = height * width * task.output.pixel // LANES
        return words + 3 + 64 // LANES + (MEMORY_LATENCY if task.operation == "load" else 0)
    taps, rows = _taps(task), group_rows(task)
    whole, rest = divmod(height, rows)
    pixels = [rows * width] * whole + [rest * width] * (rest > 0)
    computed = sum(taps * max(p, FLIGHT) for p in pixels)
    if task.operation in ("max_pool", "average_pool"):
        return blocks(channels) * computed + DEPTH
    words = LANES if task.operation in ("conv2d", "dense") else 1
    fetched = PARAMETER_WORDS + len(pixels) * taps * words
    first = PARAMETER_WORDS + words + DEPTH
    return max(blocks(channels) * computed + first, blocks(channels) * fetched + 64 // LANES + 2) + MEMORY_LATENCY


def compute(task: Task, arrays: Sequence[Bytes]) -> Bytes:
    """The output from inputs of [height, width, channels]."""
    low, high = task.bounds
    if task.operation in ("load", "store"):
        return arrays[0]
    if task.operation == "add":
        aligned = [
            requantize((ints(x) - zero) << task.spare, scale.multiplier, scale.shift)
            for x, zero, scale in zip(arrays, task.in_zeros, task.scales, strict=False)
        ]
        result = requantize(aligned[0] + aligned[1], task.scales[2].multiplier, task.scales[2].shift) + task.out_zero
    elif task.operation == "max_pool":
        result = _windows(task, arrays[0], -128).max(axis=(-2, -1))
    elif task.operation == "average_pool":
        number = _windows(task, np.ones_like(arrays[0]), 0).sum(axis=(-2, -1), dtype=np.int64)
        result = rounding_mean(_windows(task, arrays[0], 0).sum(axis=(-2, -1), dtype=np.int64), number)
    else:
        result = _scaled(_sums(task, arrays[0]), task.scales[0]) + task.out_zero
    return saturate(result, low, high).astype(np.int8)


def link(driver: str) -> list[str]:
    """What a program is linked with for a driver: the simulator is made when it is asked for."""
    return [str(simulated())] if driver == "simulator" else []


def simulated() -> Path:
    """The shared object that simulates the device, made where it has to be."""
    spec = importlib.util.spec_from_file_location("systolic_build", Path(__file__).resolve().parent / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    made: Path = build.simulator(paths.cache() / f"systolic-{LANES}", LANES)
    return made


def group_rows(task: Task) -> int:
    """How many rows of output the accumulators hold."""
    height, width, _ = task.output.shape
    return max(1, min(GROUP // width, height))


def _channels(values: Ints, task: Task) -> Ints:
    """A number for every channel, and zeros to the end of the last block."""
    channels = task.output.shape[2]
    spread = np.broadcast_to(np.asarray(values, np.int64), (channels,))
    return np.pad(spread, (0, blocks(channels) * LANES - channels))


def _kernel(task: Task) -> Bytes:
    """[kh, kw, in, out], of a dense layer with all of its input as the window; depthwise: [kh, kw, channels]."""
    assert task.weights is not None
    if task.operation == "dense":
        return task.weights.reshape(*task.inputs[0].shape, -1).astype(np.int8)
    return task.weights.astype(np.int8)


def _weights(task: Task) -> NDArray[np.uint8]:
    """[blocks of channels, bytes]."""
    channels = task.output.shape[2]
    if task.operation == "add":
        operands = zip(task.scales, task.in_zeros, strict=False)
        words = [_operand(scale, zero) for scale, zero in operands]
        return np.tile(np.frombuffer(b"".join(words), np.uint8), (blocks(channels), 1))
    kernel = _kernel(task)
    filled = [(0, -size % LANES) for size in kernel.shape[2:]]
    kernel = np.pad(kernel, ((0, 0), (0, 0), *filled))
    if task.operation == "depthwise_conv2d":
        shaped = kernel.reshape(*kernel.shape[:2], -1, LANES).transpose(2, 0, 1, 3)
    else:
        split = kernel.reshape(*kernel.shape[:2], kernel.shape[2] // LANES, LANES, -1, LANES)
        shaped = split.transpose(4, 0, 1, 2, 5, 3)
    return np.ascontiguousarray(shaped).view(np.uint8).reshape(blocks(channels), -1)


def _operand(scale: Scaling, zero: int) -> bytes:
    """A word: multiplier, shift right, zero point."""
    multiplier, right = int(scale.multiplier.ravel()[0]), -int(scale.shift.ravel()[0])
    return (multiplier | right << 32 | (zero & 255) << 40).to_bytes(LANES, "little")


def _bias(task: Task) -> Ints:
    """The biases, less what the input's zero point adds to every sum."""
    channels = task.output.shape[2]
    if task.operation == "add":
        return np.zeros(blocks(channels) * LANES, np.int64)
    kernel = _kernel(task).astype(np.int64)
    sums = kernel.sum(axis=(0, 1) if task.operation == "depthwise_conv2d" else (0, 1, 2))
    bias = np.zeros(channels, np.int64) if task.bias is None else task.bias
    return _channels(bias - task.in_zeros[0] * sums, task)


def _window(task: Task) -> tuple[int, int]:
    return task.inputs[0].shape[:2] if task.operation == "dense" else task.window


def _taps(task: Task) -> int:
    """How often the array goes over the pixels of a group."""
    depth = {"add": 2, "conv2d": blocks(task.inputs[0].shape[2]), "dense": blocks(task.inputs[0].shape[2])}
    return _window(task)[0] * _window(task)[1] * depth.get(task.operation, 1)


def _stream_crc(task: Task) -> int:
    """Of the constants as they are read: weights again for every group of rows."""
    packed, crc = pack(task), 0
    if not packed:
        return 0
    size = len(packed) // blocks(task.output.shape[2])
    groups = ceil(task.output.shape[0] / group_rows(task))
    for at in range(0, len(packed), size):
        crc = zlib.crc32(packed[at : at + PARAMETER_WORDS * LANES], crc)
        weights = packed[at + PARAMETER_WORDS * LANES : at + size]
        for _ in range(groups):
            crc = zlib.crc32(weights, crc)
    return crc


def _fields(task: Task, addresses: Addresses) -> dict[str, int]:
    flags = {f"after_{engine}" for engine in addresses.after} | ({"interrupt"} if addresses.interrupt else set())
    if task.scales and task.scales[-1].rule == "once":
        flags |= {"once"}
    code = {"conv2d": "conv", "dense": "conv", "depthwise_conv2d": "depthwise"}.get(task.operation, task.operation)
    source, output = task.inputs[0], task.output
    common = {
        "operation": OPERATIONS[code],
        "flags": sum(1 << FLAGS[flag] for flag in flags),
        "tag": addresses.tag,
        "version": VERSION,
        "source_row": source.row // LANES,
        "destination_row": output.row // LANES,
        "height": output.shape[0],
        "width": output.shape[1],
        "in_blocks": 1,
        "out_blocks": 1,
        "kernel_height": 1,
        "kernel_width": 1,
        "group_rows": 1,
    }
    if task.operation == "load":
        place = {"memory": addresses.inputs[0], "destination": addresses.output // LANES}
        return common | place | {"width": output.shape[1] * output.pixel // LANES}
    if task.operation == "store":
        place = {"memory": addresses.output, "source": addresses.inputs[0] // LANES}
        return common | place | {"width": source.shape[1] * source.pixel // LANES}
    top, left = task.padding[0][0], task.padding[1][0]
    row, pixel = source.row // LANES, source.pixel // LANES
    second = task.inputs[1] if task.operation == "add" else None
    return common | {
        "zero_in": task.in_zeros[0],
        "zero_out": task.out_zero,
        "low": task.bounds[0],
        "high": task.bounds[1],
        "source": addresses.inputs[0] // LANES - top * row - left * pixel,
        "destination": addresses.output // LANES,
        "memory": addresses.constants,
        "in_height": source.shape[0],
        "in_width": source.shape[1],
        "in_blocks": _taps(task) // (_window(task)[0] * _window(task)[1]),
        "out_blocks": blocks(output.shape[2]),
        "kernel_height": _window(task)[0],
        "kernel_width": _window(task)[1],
        "stride_y": task.strides[0],
        "stride_x": task.strides[1],
        "pad_top": top,
        "pad_left": left,
        "group_rows": group_rows(task),
        "source_pixel": pixel,
        "destination_pixel": output.pixel // LANES,
        "source2": addresses.inputs[1] // LANES if second else 0,
        "source2_row": second.row // LANES if second else 0,
        "source2_pixel": second.pixel // LANES if second else 0,
        "constants_crc": _stream_crc(task),
    }


def _windows(task: Task, x: NDArray[np.generic], fill: int) -> NDArray[np.generic]:
    return sliding(x[None], _window(task), task.strides, (1, 1), task.padding, fill)[0]


def _sums(task: Task, x: Bytes) -> Ints:
    """Exact in float64, in which numpy multiplies matrices fast."""
    windows = _windows(task, x.astype(np.float64) - task.in_zeros[0], 0)
    kernel = _kernel(task).astype(np.float64)
    if task.operation == "depthwise_conv2d":
        sums = np.einsum("yxcij,ijc->yxc", windows, kernel)
    else:
        sums = np.tensordot(windows, kernel, axes=((3, 4, 2), (0, 1, 2)))
    return sums.astype(np.int64) + (0 if task.bias is None else task.bias)


def _scaled(sums: Ints, scale: Scaling) -> Ints:
    if scale.rule != "once":
        return requantize(sums, scale.multiplier, scale.shift)
    away = np.zeros(1, bool) if scale.away is None else scale.away
    columns = np.broadcast_arrays(scale.multiplier, scale.shift, away, np.zeros(sums.shape[-1]))[:3]
    found = [IntegerScale(int(m), int(s), bool(a)) for m, s, a in zip(*columns, strict=True)]
    return np.stack([apply_integer_scale(sums[..., i], one) for i, one in enumerate(found)], axis=-1)
