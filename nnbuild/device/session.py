"""Tasks over a link: run samples, profile, dump every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from nnbuild.base.errors import UsageError
from nnbuild.device.descriptor import ModelInfo, TensorInfo, parse_descriptor
from nnbuild.device.errors import DeviceRestarted, WrongFirmware
from nnbuild.device.layers import LayerCost, layer_costs
from nnbuild.device.link import Link, Region, StackUse
from nnbuild.numeric.edge import dequantize, quantize
from nnbuild.numeric.rounding import limits

Array = npt.NDArray[Any]
Sample = Mapping[str, Array]
Progress = Callable[[int, int], None]
Result = TypeVar("Result")

_RESTARTS = 3  # device restarts that a job survives


@dataclass(frozen=True)
class Runs:
    """The results: for each output, in the model's order, all samples stacked, raw and as float32; ticks per run."""

    raw: tuple[Array, ...]
    y: tuple[npt.NDArray[np.float32], ...]
    ticks: tuple[int, ...]


def open_model(link: Link, descriptor: bytes | None = None) -> ModelInfo:
    """Starts a session. With the descriptor of the model just built, verifies that the device carries that model."""
    link.hello()
    model = link.describe(descriptor)
    if descriptor is not None:
        _require(link, model, parse_descriptor(descriptor))
    return model


def _require(link: Link, model: ModelInfo, expected: ModelInfo) -> None:
    """Refuses another model, and wrong descriptions of its tensors, by which values would be misread."""
    if model.hash != expected.hash:
        raise WrongFirmware(
            link.transport.name,
            f"The device carries model '{model.name}' ({model.hash}), not the one just built ({expected.hash}).",
            "Flash the new firmware first, for example: scons flash check",
        )
    kinds = (("input", model.inputs, expected.inputs), ("output", model.outputs, expected.outputs))
    for kind, found, wanted in kinds:
        for index, (ours, theirs) in enumerate(zip_longest(wanted, found)):
            if ours != theirs:
                _refuse_description(link, f"{kind} {index}", theirs, ours)
    known = {step.output.name: step.output for step in expected.steps if step.output is not None}
    for step in model.steps:
        if step.output is not None and step.output != known.get(step.output.name, step.output):
            _refuse_description(link, f"layer '{step.layer}'", step.output, known[step.output.name])


def _refuse_description(link: Link, where: str, found: TensorInfo | None, wanted: TensorInfo | None) -> NoReturn:
    raise WrongFirmware(
        link.transport.name,
        f"The firmware describes its {where} as {_words(found)}; the model's is {_words(wanted)}.",
        "Build and flash the firmware again with this version.",
    )


def _words(tensor: TensorInfo | None) -> str:
    if tensor is None:
        return "absent"
    scaled = "" if tensor.scale is None else f", scale {tensor.scale!r}, zero point {tensor.zero_point}"
    return f"'{tensor.name}' ({tensor.type} {list(tensor.shape)}{scaled})"


def to_wire(tensor: TensorInfo, values: Array, order: Literal["<", ">"] = "<") -> bytes:
    """A sample of one input as bytes for the model. Integers of the input's own type pass unchanged."""
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
    return np.ascontiguousarray(values, np.dtype(tensor.dtype).newbyteorder(order)).tobytes()


def from_wire(tensor: TensorInfo, data: bytes, order: Literal["<", ">"] = "<") -> Array:
    return np.frombuffer(data, np.dtype(tensor.dtype).newbyteorder(order)).reshape(tensor.shape).astype(tensor.dtype)


def to_float(tensor: TensorInfo, raw: Array) -> npt.NDArray[np.float32]:
    if tensor.scale is None:
        return raw.astype(np.float32)
    return dequantize(raw, tensor.scale, tensor.zero_point)


def write_sample(link: Link, model: ModelInfo, sample: Sample) -> None:
    """Writes every input, because a run may have overwritten them."""
    for index, tensor in enumerate(model.inputs):
        if tensor.name not in sample:
            raise UsageError(
                f"input '{tensor.name}'", "the samples have no array for it.", f"Give arrays named {_names(model)}."
            )
        link.write(index, to_wire(tensor, sample[tensor.name], link.order))


def _names(model: ModelInfo) -> str:
    return ", ".join(tensor.name for tensor in model.inputs)


def _run_one(link: Link, model: ModelInfo, sample: Sample) -> tuple[int, list[Array]]:
    write_sample(link, model, sample)
    ticks = link.run()
    outputs = [link.read(Region.OUTPUT, index, tensor.bytes) for index, tensor in enumerate(model.outputs)]
    return ticks, [from_wire(tensor, data, link.order) for tensor, data in zip(model.outputs, outputs, strict=True)]


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

    If the device restarts, a new session is started. A stateful model then repeats from the first sample: its state is
    lost, and results without it would be wrong.
    """
    carried = stateful and not reset_each
    results: list[tuple[int, list[Array]]] = []
    restarts = 0
    fresh = True  # start a new sequence first
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
    """Starts a new session after a restart; the descriptor's checksum shows that it is still the same model."""
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
    """Runs a job without earlier state, and repeats it if the device restarts."""
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
    """The cost of each step for one sample, from a new sequence."""

    def job() -> list[int]:
        link.init()
        write_sample(link, model, sample)
        return link.profile()

    return _surviving(link, model, job)


def dump_layers(link: Link, model: ModelInfo, sample: Sample) -> list[tuple[int, Array]]:
    """Runs one sample step by step from a new sequence; returns every step that has its own output, with that
    output."""

    def job() -> list[tuple[int, Array]]:
        link.init()
        write_sample(link, model, sample)
        found = []
        for index, step in enumerate(model.steps):
            link.steps(index, index + 1)
            if step.output is not None:
                data = link.read(Region.STEP_OUTPUT, index, step.output.bytes)
                found.append((index, from_wire(step.output, data, link.order)))
        return found

    return _surviving(link, model, job)


@dataclass(frozen=True)
class Measured:
    """All measurements for a check."""

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
    """Runs all samples, then profiles the first one and reads the stack use."""
    runs = run_samples(link, model, samples, stateful=stateful, reset_each=reset_each, progress=progress)
    layers = layer_costs(model, profile_sample(link, model, samples[0])) if samples else ()
    stack = _surviving(link, model, link.stack)
    return Measured(runs, _surviving(link, model, link.init), stack, layers)
