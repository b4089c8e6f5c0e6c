"""All facts of a report on one build, as plain frozen values, for the page, the pictures and the comparison of two
builds. Nothing here depends on where a value comes from."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from nnbuild.device.accelerator import AcceleratorUse
from nnbuild.device.gates import CheckReport
from nnbuild.device.run_time import time_of
from nnbuild.report.constant_sizes import ConstantSizes
from nnbuild.report.listening import Listening
from nnbuild.report.weights import Weights

Role = Literal["input", "tensor", "output", "scratch"]
FORMAT = "nnbuild-report"
VERSION = 1


@dataclass(frozen=True)
class Node:
    """One box of the network's picture: an input or an operation. `sources` are the numbers of the nodes whose
    outputs it reads; `share` is its part of the total cost, from 0 to 1."""

    name: str
    kind: str
    detail: str
    shape: str
    format: str
    sources: tuple[int, ...]
    is_output: bool
    share: float


@dataclass(frozen=True)
class Buffer:
    """A range of the arena, live from step `first` to step `last`. An input is live before the first step."""

    name: str
    role: Role
    offset: int
    size: int
    first: int
    last: int
    overlaps: tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """A candidate kernel of a layer: its price, which may have been measured, or the reason why it cannot serve."""

    kernel: str
    cycles: float | None
    measured: bool
    weights: int
    scratch: int
    reason: str


@dataclass(frozen=True)
class Layer:
    """One step of a run. `cost` is measured, None if nothing ran; `priced` is the plan's estimate.

    `versions` are (instruction set, kernel), the best first: a program may contain several and choose at run time.
    `encoding` is the storage format of its weights where they take fewer bytes than one each. `parts` is the number of
    threads that compute it in parallel.
    """

    name: str
    op: str
    kernel: str
    versions: tuple[tuple[str, str], ...]
    shape: str
    format: str
    macs: int
    cost: int | None
    priced: float
    weights: int
    encoding: str
    code: int
    output: int
    scratch: int
    parts: int
    in_place: bool
    options: tuple[Option, ...]
    """The selected kernel, then the other candidates in order."""
    stored: ConstantSizes | None = None
    """Its constants compared with its parameters."""

    @property
    def weight(self) -> float:
        """Its cost: measured if anything ran, otherwise estimated."""
        return float(self.cost) if self.cost is not None else self.priced


@dataclass(frozen=True)
class Peak:
    step: int
    layer: str
    size: int
    alive: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """One memory of the board, with its uses."""

    name: str
    used: int
    size: int | None
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LayerError:
    """The quantization error of one layer's output. `sqnr` is None without any error, `scale` for floats."""

    layer: str
    format: str
    low: float
    high: float
    scale: float | None
    saturated: int
    values: int
    sqnr: float | None
    max_error: float


@dataclass(frozen=True)
class OutputError:
    """`agreement` is None where a sample's output is one value."""

    name: str
    agreement: float | None
    rmse: float
    cosine: float


@dataclass(frozen=True)
class Quantization:
    samples: int
    layers: tuple[LayerError, ...]
    outputs: tuple[OutputError, ...]


@dataclass(frozen=True)
class StackUse:
    """`bound` is the static worst case of a run, by the call chain in `path`; `used` was measured, including the
    link's own frames, and is 0 if it was not."""

    bound: int
    budget: int | None
    used: int
    size: int
    path: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class AuditResult:
    """For the model's own objects, which contain nothing forbidden: otherwise there would be no program."""

    policy: str
    warnings: tuple[str, ...]
    supplied: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gate:
    where: str
    gate: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Comparison:
    against: str
    rmse: float
    mae: float
    max_error: float
    cosine: float
    differ: int | None
    agreement: float | None


@dataclass(frozen=True)
class Output:
    name: str
    comparisons: tuple[Comparison, ...]
    accuracy: float | None
    float_accuracy: float | None
    confusion: tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True)
class Check:
    """`mean`, `low` and `high` are of one run, in the report's unit."""

    samples: int
    drawn: bool
    hertz: int
    mean: float | None
    low: float | None
    high: float | None
    gates: tuple[Gate, ...]
    outputs: tuple[Output, ...]
    modelled: str = ""
    """The estimated time of one run, in words."""
    milliseconds: float | None = None
    milliseconds_are: str = ""
    """measured, estimated, or at least; None where the clock is unknown."""

    @property
    def passed(self) -> bool:
        return all(gate.passed for gate in self.gates)


@dataclass(frozen=True)
class File:
    """An input or output file with its SHA-256."""

    name: str
    role: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Origin:
    """How it was built: enough to reproduce the build and verify the result."""

    command: str
    options: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    files: tuple[File, ...]
    digest: str


@dataclass(frozen=True)
class Facts:
    """The whole report. `check` is None where nothing ran; `check_missing` gives the reason."""

    name: str
    board: str
    board_summary: str
    precision: str
    optimize: str
    unit: str
    nodes: tuple[Node, ...]
    layers: tuple[Layer, ...]
    buffers: tuple[Buffer, ...]
    arena: int
    state: int
    peak: Peak | None
    memories: tuple[Memory, ...]
    flash_code: int
    flash_weights: int
    stack: StackUse
    audit: AuditResult
    quantization: Quantization | None
    weights: Weights | None
    check: Check | None
    check_missing: str
    origin: Origin
    notes: tuple[str, ...]
    beside: AcceleratorUse | None = None
    """The accelerator, if one computes."""
    clock: int = 0
    """Clock of the board's processor in hertz, 0 if unknown."""
    listening: Listening | None = None
    """For a network that runs on new input only."""

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def cost(self) -> float:
        """Of one run: measured, otherwise the sum of the plan's prices."""
        if self.check is not None and self.check.mean is not None:
            return self.check.mean
        return sum(layer.weight for layer in self.layers)

    @property
    def passed(self) -> bool:
        return self.check is None or self.check.passed

    @property
    def accuracy(self) -> float | None:
        return next((o.accuracy for o in self.check.outputs if o.accuracy is not None), None) if self.check else None

    @property
    def agreement(self) -> float | None:
        """Agreement with the float model on the check's samples."""
        outputs = self.check.outputs if self.check else ()
        against = [c for output in outputs for c in output.comparisons if c.against == "float"]
        return next((c.agreement for c in against if c.agreement is not None), None)


def check_facts(report: CheckReport, drawn: bool) -> Check:
    """The part of a check's report that this report shows; `drawn`: its samples were random."""
    time = report.duration
    outputs = tuple(
        Output(
            output.name,
            tuple(
                Comparison(
                    c.against,
                    c.metrics.rmse,
                    c.metrics.mae,
                    c.metrics.max_error,
                    c.metrics.cosine,
                    c.mismatches,
                    c.agreement,
                )
                for c in output.comparisons
            ),
            output.accuracy,
            output.float_accuracy,
            output.confusion,
        )
        for output in report.outputs
    )
    mean = time.mean if time is not None else None
    took = time_of(report.unit, mean, report.hertz, report.modelled)
    return Check(
        report.samples,
        drawn,
        report.hertz,
        mean,
        time.min if time is not None else None,
        time.max if time is not None else None,
        tuple(Gate(r.where, r.gate, r.passed, r.detail) for r in report.results),
        outputs,
        modelled=_modelled(report),
        milliseconds=took.milliseconds if took is not None else None,
        milliseconds_are=took.kind if took is not None else "",
    )


def as_object(facts: Facts) -> dict[str, Any]:
    """Plain values for JSON; non-finite numbers become words."""
    values: dict[str, Any] = _plain(dataclasses.asdict(facts))
    return {"format": FORMAT, "version": VERSION, **values}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


T = TypeVar("T")


def from_object(value: Any) -> Facts:
    """Reads the output of `as_object`; ValueError describes any mistake."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError("it is not a report from nnbuild")
    if value.get("version") != VERSION:
        raise ValueError(f"it is a report of version {value.get('version')}, and this nnbuild reads version {VERSION}")
    return _record(Facts, {key: entry for key, entry in value.items() if key not in ("format", "version")}, "")


def _record(cls: type[T], value: Any, at: str) -> T:
    if not isinstance(value, dict):
        raise ValueError(f"{at or 'the report'} is not an object")
    hints = typing.get_type_hints(cls)
    absent = [name for name in hints if name not in value and name not in vars(cls)]
    if absent:
        raise ValueError(f"{at}{'.' if at else ''}{absent[0]} is missing")
    there = {name: hint for name, hint in hints.items() if name in value}
    return cls(**{name: _read(hint, value[name], f"{at}{'.' if at else ''}{name}") for name, hint in there.items()})


def _read(hint: Any, value: Any, at: str) -> Any:
    """Converts a plain value to the type of a field's annotation."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return None if value is None else _read(next(a for a in arguments if a is not type(None)), value, at)
    if typing.get_origin(hint) is Literal:
        return _expect(value in arguments, value, at)
    if typing.get_origin(hint) is tuple:
        _expect(isinstance(value, list), value, at)
        inner = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
        _expect(len(inner) == len(value), value, at)
        return tuple(_read(kind, entry, f"{at}[{i}]") for i, (kind, entry) in enumerate(zip(inner, value, strict=True)))
    if dataclasses.is_dataclass(hint):
        return _record(typing.cast(type, hint), value, at)
    if hint is float:
        words = ("inf", "-inf", "nan")
        _expect(value in words or (isinstance(value, (int, float)) and not isinstance(value, bool)), value, at)
        return float(value)
    return _expect(isinstance(value, hint) and (hint is bool or not isinstance(value, bool)), value, at)


def _expect(holds: bool, value: Any, at: str) -> Any:
    if not holds:
        raise ValueError(f"{at} is {str(value)[:40]!r}")
    return value


def _modelled(report: CheckReport) -> str:
    found = report.modelled
    if found is None:
        return ""
    said = found.against(report.duration.mean) if report.duration is not None and report.unit == "cycles" else ""
    if found.at_least:
        return f"Estimated: {found.milliseconds()}."
    words = f"Estimated: a model of the {found.core} says {found.cycles:,} cycles: {found.milliseconds()}."
    return f"{words} But {said}." if said else words
