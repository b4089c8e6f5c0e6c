"""The simulated accelerator in this process, and random tasks for it."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from nnbuild.base import paths
from nnbuild.numeric.elementwise import add_scales
from nnbuild.numeric.multiplier import quantize_multipliers
from nnbuild.offload.task import Addresses, Layout, Scaling, Task

FOLDER = Path(__file__).resolve().parents[2] / "devices" / "systolic"
needs_verilator = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")


def load(name: str) -> ModuleType:
    """A Python file of the device's folder, anew."""
    spec = importlib.util.spec_from_file_location(f"systolic_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def device(lanes: int = 8) -> ModuleType:
    module = load("device")
    module.LANES = lanes
    return module


@cache
def library(lanes: int = 8, coverage: bool = False) -> ctypes.CDLL:
    kind = f"systolic-{lanes}{'-coverage' * coverage}"
    made = ctypes.CDLL(str(load("build").simulator(paths.cache() / kind, lanes, coverage)))
    for name, result in {"open": ctypes.c_void_p, "memory": ctypes.POINTER(ctypes.c_uint8)}.items():
        getattr(made, f"systolic_sim_{name}").restype = result
    made.systolic_sim_cycles.restype = ctypes.c_uint64
    return made


class Simulated:
    """A device with its memory, held from open to close."""

    def __init__(self, memory: int = 1 << 20, lanes: int = 8, latency: int = 8, coverage: bool = False) -> None:
        self.d = device(lanes)
        self._calls = library(lanes, coverage)
        self._sim = ctypes.c_void_p(self._calls.systolic_sim_open(memory, latency))
        self.memory = np.ctypeslib.as_array(self._calls.systolic_sim_memory(self._sim), (memory,))
        self.write("ctrl", 1)
        self.sent = 0

    def __enter__(self) -> Simulated:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.systolic_sim_close(self._sim)

    def read(self, register: str) -> int:
        return int(self._calls.systolic_sim_read(self._sim, self.d.REGISTERS[register])) & 0xFFFFFFFF

    def write(self, register: str, value: int) -> None:
        self._calls.systolic_sim_write(self._sim, self.d.REGISTERS[register], value)

    def field(self, register: str, name: str) -> int:
        low, bits = self.d.BITS[register][name]
        return self.read(register) >> low & ((1 << bits) - 1)

    def step(self, cycles: int) -> int:
        return int(self._calls.systolic_sim_step(self._sim, cycles))

    def interrupt(self) -> bool:
        return bool(self._calls.systolic_sim_interrupt(self._sim))

    def cycles(self) -> int:
        return int(self._calls.systolic_sim_cycles(self._sim))

    def fault(self, kind: int, after: int = 0, where: int = 0, mask: int = 0) -> None:
        self._calls.systolic_sim_fault(self._sim, kind, after, where, ctypes.c_uint64(mask))

    def coverage(self, path: Path) -> None:
        self._calls.systolic_sim_coverage(self._sim, str(path).encode())

    def reset(self) -> None:
        bits = {name: 1 << low for name, (low, _) in self.d.BITS["ctrl"].items()}
        self.write("ctrl", bits["enable"] | bits["reset"] | bits["clear"])
        self.sent = 0

    def submit(self, address: int, limit: int = 200_000) -> None:
        """Rings, once there is room."""
        while self.field("status", "full") and limit > 0:
            limit -= self.step(16)
        self.write("doorbell", address)
        self.sent += 1

    def finish(self, limit: int = 2_000_000) -> int:
        """Until all is done, or an error; which is 0 when there is none."""
        while limit > 0:
            status, done = self.read("status"), self.read("done")
            error = status >> 4 & 15
            if error or done == self.sent:
                return error
            limit -= self.step(64)
        raise AssertionError(f"{self.read('done')} of {self.sent} tasks came to an end")

    def run(self, descriptors: Sequence[bytes], at: int) -> int:
        """Puts descriptors into memory and runs them."""
        for index, descriptor in enumerate(descriptors):
            place = at + 64 * index
            self.memory[place : place + 64] = np.frombuffer(descriptor, np.uint8)
            self.submit(place)
        return self.finish()


def padded(x: np.ndarray[Any, Any], lanes: int) -> np.ndarray[Any, Any]:
    return np.pad(x, ((0, 0), (0, 0), (0, -x.shape[2] % lanes)))


def layout(rng: Generator, shape: tuple[int, int, int], lanes: int) -> Layout:
    """With room between pixels and rows now and then, as where several are joined along the channels."""
    pixel = lanes * (-(-shape[2] // lanes) + int(rng.choice([0, 0, 1])))
    return Layout(shape, shape[1] * pixel + lanes * int(rng.choice([0, 0, 3])), pixel)


def scaling(rng: Generator, channels: int, rule: str = "twice") -> Scaling:
    """As trained: mostly of one size, but some channels are dead and some tower over the others."""
    reals = 2.0 ** rng.uniform(-12, -4, channels)
    reals[rng.random(channels) < 0.05] = 0.0
    reals[rng.random(channels) < 0.05] *= 2.0 ** rng.integers(-20, 10)
    multiplier, shift = quantize_multipliers(reals)
    if rule == "once":
        return Scaling(multiplier, np.clip(31 - shift, 27, 62), rule, rng.random(channels) < 0.5)
    return Scaling(multiplier, shift, rule)


def random_task(rng: Generator, lanes: int = 8, largest: int = 12) -> Task:
    """Any operation of any shape that the device takes."""
    kinds = ["conv2d", "conv2d", "depthwise_conv2d", "dense", "max_pool", "average_pool", "add"]
    operation = str(rng.choice(kinds))
    if rng.random() < 0.1:  # of several groups of rows
        largest = 3 * largest
    height, width = (int(v) for v in rng.integers(1, largest + 1, 2))
    channels = int(rng.integers(1, 3 * lanes if largest < 20 else lanes + 1))
    zero, out_zero = (int(v) for v in rng.integers(-128, 128, 2))
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2)) if rng.random() < 0.3 else (-128, 127)
    task = Task(
        operation,  # type: ignore[arg-type]
        operation,
        (layout(rng, (height, width, channels), lanes),),
        layout(rng, (height, width, channels), lanes),
        in_zeros=(zero,),
        out_zero=out_zero,
        bounds=(low, high),
    )
    if operation == "add":
        scales = add_scales(*(float(v) for v in 2.0 ** rng.uniform(-8, -2, 3)), 8)
        found = tuple(Scaling(np.array([s.multiplier]), np.array([s.shift])) for s in scales[1:])
        other = layout(rng, (height, width, channels), lanes)
        return replace(
            task, inputs=(task.inputs[0], other), in_zeros=(zero, int(rng.integers(-128, 128))), scales=found
        )
    if operation == "dense":
        height, width = (min(v, 4) for v in (height, width))
        outs = int(rng.integers(1, 3 * lanes))
        task = replace(
            task, inputs=(layout(rng, (height, width, channels), lanes),), output=layout(rng, (1, 1, outs), lanes)
        )
        shape: tuple[int, ...] = (height * width * channels, outs)
    else:
        task = _slid(rng, task)
        outs = int(rng.integers(1, 3 * lanes)) if operation == "conv2d" else channels
        task = replace(task, output=layout(rng, (*task.output.shape[:2], outs), lanes))
        shape = (*task.window, channels, outs) if operation == "conv2d" else (*task.window, channels)
    if operation in ("max_pool", "average_pool"):
        return replace(task, out_zero=zero)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    weights[..., rng.random(shape[-1]) < 0.1] = 0
    bias = rng.integers(-20000, 20000, outs)
    rule = str(rng.choice(["twice", "once"]))
    return replace(task, weights=weights, bias=bias, scales=(scaling(rng, outs, rule),))


def _slid(rng: Generator, task: Task) -> Task:
    """With a window, strides and padding that fit."""
    height, width, _ = task.inputs[0].shape
    window = tuple(int(rng.integers(1, min(size, 5) + 1)) for size in (height, width))
    strides = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    padding = tuple((int(rng.integers(0, k)), int(rng.integers(0, k))) for k in window)
    sizes = [
        (size + sum(pad) - k) // stride + 1
        for size, pad, k, stride in zip((height, width), padding, window, strides, strict=True)
    ]
    shape = (sizes[0], sizes[1], task.output.shape[2])
    return replace(task, window=window, strides=strides, padding=padding, output=replace(task.output, shape=shape))


def extent(tensor: Layout) -> int:
    return tensor.shape[0] * tensor.row


def put(memory: np.ndarray[Any, Any], at: int, tensor: Layout, values: np.ndarray[Any, Any]) -> None:
    for y in range(tensor.shape[0]):
        for x in range(tensor.shape[1]):
            place = at + y * tensor.row + x * tensor.pixel
            memory[place : place + tensor.shape[2]] = values[y, x].view(np.uint8)


def got(memory: np.ndarray[Any, Any], at: int, tensor: Layout) -> np.ndarray[Any, Any]:
    height, width, channels = tensor.shape
    strides = (tensor.row, tensor.pixel, 1)
    view = np.lib.stride_tricks.as_strided(memory[at:].view(np.int8), (height, width, channels), strides)
    return view.copy()


def moved(operation: str, size: int, lanes: int) -> Task:
    """A copy of so many bytes, as one row."""
    words = -(-size // lanes)
    whole = Layout((1, words, lanes), words * lanes, lanes)
    return Task(operation, operation, (whole,), whole)  # type: ignore[arg-type]


def triple(
    task: Task, inputs: Sequence[np.ndarray[Any, Any]], sim: Simulated, at: int, scratch: int, tag: int = 0
) -> tuple[list[bytes], int, int]:
    """Descriptors that load, compute and store, everything put into memory from `at` on; where the output will be, and
    what is free behind it."""
    lanes, d = sim.d.LANES, sim.d
    place, pad, descriptors, sources = at, scratch, [], []
    for tensor, values in zip(task.inputs, inputs, strict=True):
        size = -(-extent(tensor) // lanes) * lanes
        put(sim.memory, place, tensor, values)
        load_ = Addresses((place,), pad, tag=tag)
        descriptors.append(d.describe(moved("load", size, lanes), load_))
        sources.append(pad)
        place, pad = place + size, pad + size
    packed = d.pack(task)
    sim.memory[place : place + len(packed)] = np.frombuffer(packed, np.uint8)
    own = Addresses(tuple(sources), pad, place, tag + 1, frozenset({"dma"}))
    descriptors.append(d.describe(task, own))
    place += len(packed)
    size = -(-extent(task.output) // lanes) * lanes
    store = Addresses((pad,), place, tag=tag + 2, after=frozenset({"array"}), interrupt=True)
    descriptors.append(d.describe(moved("store", size, lanes), store))
    return descriptors, place, place + size


def random_inputs(rng: Generator, task: Task) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple(rng.integers(-128, 128, tensor.shape).astype(np.int8) for tensor in task.inputs)
