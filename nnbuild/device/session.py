"""Whole jobs over a link: run samples, profile, dump every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nnbuild.base.errors import UsageError
from nnbuild.device.descriptor import ModelInfo, TensorInfo
from nnbuild.device.errors import DeviceRestarted, WrongFirmware
from nnbuild.device.layers import LayerCost, layer_costs
from nnbuild.device.link import Link, Region, StackUse
from nnbuild.numeric.edge import dequantize, quantize
from nnbuild.numeric.rounding import limits

Array = npt.NDArray[Any]
Sample = Mapping[str, Array]
Progress = Callable[[int, int], None]
Result = TypeVar("Result")

_RESTARTS = 3  # times a job survives that the device restarts in the middle


@dataclass(frozen=True)
class Runs:
    """What came back: per output (in the model's order) all samples stacked, raw and as float32; ticks per run."""

    raw: tuple[Array, ...]
    y: tuple[npt.NDArray[np.float32], ...]
    ticks: tuple[int, ...]


def open_model(link: Link, model_hash: str | None = None, descriptor: bytes | None = None) -> ModelInfo:
    """Says hello, learns which model is there, and insists that it is the one that is meant."""
    link.hello()
    model = link.describe(descriptor)
    if model_hash is not None and model.hash != model_hash:
        raise WrongFirmware(
            link.transport.name,
            f"The device carries model '{model.name}' ({model.hash}), not the one just built ({model_hash}).",
            "Flash the new firmware first, for example: scons flash check",
        )
    return model


def to_wire(tensor: TensorInfo, values: Array) -> bytes:
    """A sample of one input as the bytes the model takes. Integers of the input's own type pass as they are."""
    if values.shape != tensor.shape:
        raise UsageError(
            f"input '{tensor.name}'",
            f"A sample has shape {values.shape}, the model takes {tensor.shape}.",
            "Give one array per input whose first axis counts the samples.",
        )
    if tensor.scale is not None and values.dtype.kind == "f":
        values = quantize(values, tensor.scale, tensor.zero_point, *limits(tensor.dtype))
    elif tensor.scale is not None and values.dtype != tensor.dtype:
        raise UsageError(
            f"input '{tensor.name}'",
            f"A sample has type {values.dtype}, the model takes {tensor.type}.",
            "Give float32 in the model's own units, or the model's own integers.",
        )
    return np.ascontiguousarray(values, tensor.dtype).tobytes()


def from_wire(tensor: TensorInfo, data: bytes) -> Array:
    return np.frombuffer(data, tensor.dtype).reshape(tensor.shape)


def to_float(tensor: TensorInfo, raw: Array) -> npt.NDArray[np.float32]:
    if tensor.scale is None:
        return raw.astype(np.float32)
    return dequantize(raw, tensor.scale, tensor.zero_point)


def write_sample(link: Link, model: ModelInfo, sample: Sample) -> None:
    """Writes every input: a run may have overwritten them."""
    for index, tensor in enumerate(model.inputs):
        if tensor.name not in sample:
            raise UsageError(
                f"input '{tensor.name}'", "the samples have no array for it.", f"Give arrays named {_names(model)}."
            )
        link.write(index, to_wire(tensor, sample[tensor.name]))


def _names(model: ModelInfo) -> str:
    return ", ".join(tensor.name for tensor in model.inputs)


def _run_one(link: Link, model: ModelInfo, sample: Sample) -> tuple[int, list[Array]]:
    write_sample(link, model, sample)
    ticks = link.run()
    outputs = [link.read(Region.OUTPUT, index, tensor.bytes) for index, tensor in enumerate(model.outputs)]
    return ticks, [from_wire(tensor, data) for tensor, data in zip(model.outputs, outputs, strict=True)]


def run_samples(
    link: Link,
    model: ModelInfo,
    samples: Sequence[Sample],
    *,
    stateful: bool = False,
    reset_each: bool = False,
    progress: Progress | None = None,
) -> Runs:
    """Runs the samples in order from a new sequence, or each from a new sequence.

    A device that restarts in the middle is greeted again. A stateful model then begins at the first sample: its
    state is lost, and results that continue without it would be wrong.
    """
    carried = stateful and not reset_each
    results: list[tuple[int, list[Array]]] = []
    restarts = 0
    fresh = True  # the device is to start a new sequence first
    while len(results) < len(samples):
        try:
            if fresh or reset_each:
                link.init()
                fresh = False
            results.append(_run_one(link, model, samples[len(results)]))
        except DeviceRestarted:
            restarts += 1
            if restarts > _RESTARTS:
                raise
            _greet_again(link, model)
            fresh = True
            if carried:
                results.clear()
        if progress is not None:
            progress(len(results), len(samples))
    return _stacked(model, results)


def _greet_again(link: Link, model: ModelInfo) -> None:
    """After a restart; the checksum of the description shows that it is still the same model."""
    before, after = link.greeting, link.hello()
    if before is None or (before.descriptor_size, before.descriptor_crc) != (
        after.descriptor_size,
        after.descriptor_crc,
    ):
        raise WrongFirmware(
            link.transport.name,
            f"The device restarted with a model other than '{model.name}'.",
            "Flash the firmware again, then check.",
        )


def _surviving(link: Link, model: ModelInfo, job: Callable[[], Result]) -> Result:
    """Does a job that depends on nothing before it, again if the device restarts meanwhile."""
    for _ in range(_RESTARTS):
        try:
            return job()
        except DeviceRestarted:
            _greet_again(link, model)
    return job()


def _stacked(model: ModelInfo, results: Sequence[tuple[int, Sequence[Array]]]) -> Runs:
    raw = tuple(
        np.stack([outputs[index] for _, outputs in results]) if results else np.zeros((0, *tensor.shape), tensor.dtype)
        for index, tensor in enumerate(model.outputs)
    )
    y = tuple(to_float(tensor, values) for tensor, values in zip(model.outputs, raw, strict=True))
    return Runs(raw, y, tuple(ticks for ticks, _ in results))


def profile_sample(link: Link, model: ModelInfo, sample: Sample) -> list[int]:
    """What each step takes for one sample, from a new sequence."""

    def job() -> list[int]:
        link.init()
        write_sample(link, model, sample)
        return link.profile()

    return _surviving(link, model, job)


def dump_layers(link: Link, model: ModelInfo, sample: Sample) -> list[tuple[int, Array]]:
    """Runs one sample step by step, from a new sequence: every step that has an output of its own, and that output."""

    def job() -> list[tuple[int, Array]]:
        link.init()
        write_sample(link, model, sample)
        found = []
        for index, step in enumerate(model.steps):
            link.steps(index, index + 1)
            if step.output is not None:
                data = link.read(Region.STEP_OUTPUT, index, step.output.bytes)
                found.append((index, from_wire(step.output, data)))
        return found

    return _surviving(link, model, job)


@dataclass(frozen=True)
class Measured:
    """Everything a check wants from a device."""

    runs: Runs
    init_ticks: int
    stack: StackUse
    layers: tuple[LayerCost, ...]


def measure(
    link: Link,
    model: ModelInfo,
    samples: Sequence[Sample],
    *,
    stateful: bool = False,
    reset_each: bool = False,
    progress: Progress | None = None,
) -> Measured:
    """Runs all samples, then profiles the first one and asks for the stack."""
    runs = run_samples(link, model, samples, stateful=stateful, reset_each=reset_each, progress=progress)
    layers = layer_costs(model, profile_sample(link, model, samples[0])) if samples else ()
    stack = _surviving(link, model, link.stack)
    return Measured(runs, _surviving(link, model, link.init), stack, layers)
