"""What a check requires (gates), what it measures (evidence), and what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any

import numpy.typing as npt

from nnbuild.base.errors import UsageError
from nnbuild.device.accelerator import AcceleratorUse
from nnbuild.device.layers import LayerCost, LayerDifference
from nnbuild.device.metrics import Metrics, Statistics
from nnbuild.device.run_time import Modelled

Array = npt.NDArray[Any]
SHARE, COSINE = (0.0, 1.0), (-1.0, inf)
RANGES = {
    **dict.fromkeys(("agreement", "golden_agreement", "min_accuracy", "max_accuracy_drop"), SHARE),
    **dict.fromkeys(("golden_cosine", "min_cosine"), COSINE),
    "min_nse": (-inf, inf),
}
"""What a gate may be; others are no less than 0. One too strict to be met is no error: it is missed."""


@dataclass(frozen=True)
class Gates:
    """The requirements of a check. None: reported but not required; for a tolerance: what rounding can cause.

    A required share of samples allows for chance with few samples: see `metrics.fewest`.
    """

    integer_mismatches: int = 0  # device against the integer reference
    float_tolerance: float | None = None  # float device against the reference: absolute
    agreement: float = 0.98  # same class as the float model, for classifiers
    golden_tolerance: float | None = None  # against golden outputs: absolute
    golden_agreement: float = 0.98  # quantised classifier against golden outputs
    golden_cosine: float = 0.98  # other quantised model against golden outputs
    max_rmse: float | None = None  # this and the following: device against the float model
    max_mae: float | None = None
    max_l2r: float | None = None
    min_nse: float | None = None
    min_cosine: float | None = None
    min_accuracy: float | None = None  # needs labels
    max_accuracy_drop: float | None = None  # against the float model, as a share
    stack_slack: int = 576  # bytes by which the measured stack may exceed the static bound: the link's own frames

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            value, (low, high) = getattr(self, name), RANGES.get(name, (0.0, inf))
            if value is not None and not low <= value <= high:
                where = f"is below {low:g}" if value < low else f"is beyond {low:g} to {high:g}"
                advice = "Give a share: 0.98 for 98 %." if (low, high) == SHARE else f"Give one of {low:g} or more."
                raise UsageError(f"gate {name.replace('_', '-')!r}", f"{value:g} {where}.", advice)


@dataclass(frozen=True, eq=False)
class Output:
    """The evidence for one output: the first axis of every array counts the samples."""

    name: str
    raw: Array  # as received from the device
    y: Array  # the same as float32
    reference: Array | None = None  # the PC's reference, of raw's type
    tolerance: Array | float = 0.0  # tolerance of raw against the reference, for all samples or for each
    step: float = 1.0  # the difference in y for a difference of 1 in raw
    float_y: Array | None = None  # from the float model
    golden_y: Array | None = None  # from the sample file
    golden_unit: float = 0.0  # what golden outputs themselves are rounded to, however small they are
    classifier: bool = False
    quantized: bool = False  # computed in integers, even if the output itself is float
    rounded: bool = False  # computed in floats with weights that were rounded to fewer bits
    own: bool = False  # the integers are the model file's own: their loss precedes this program
    unlike: str = ""  # where the file's own interpreter computes otherwise, and what to do


@dataclass(frozen=True)
class Stack:
    """Bytes. `bound` is the static worst case, where known."""

    used: int
    size: int
    bound: int | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """All measurements, and their references."""

    model: str
    model_hash: str
    board: str
    quantize: str
    unit: str
    hertz: int
    outputs: Sequence[Output]
    ticks: Sequence[int] = ()  # per run
    init_ticks: int | None = None
    labels: Array | None = None  # for the first classifier among the outputs, otherwise for the first output
    stack: Stack | None = None
    layers: Sequence[LayerCost] = ()
    differences: Sequence[LayerDifference] = ()
    looked_at: int = 0  # the sample of the compared layers
    memory: Mapping[str, int] = field(default_factory=dict)
    flash: int | None = None  # budget for the model's constants and code, in bytes


@dataclass(frozen=True)
class GateResult:
    """One requirement and its result."""

    where: str
    gate: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Comparison:
    """One output against one reference. `mismatches` is for integers, `agreement` for classifiers."""

    against: str  # "reference", "float" or "golden"
    metrics: Metrics
    mismatches: int | None = None
    agreement: float | None = None


@dataclass(frozen=True)
class OutputReport:
    name: str
    comparisons: tuple[Comparison, ...]
    statistics: Statistics
    accuracy: float | None = None
    float_accuracy: float | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    lost: tuple[int, ...] = ()
    """The values, by their place along the last axis, that quantization left nothing of."""
    values: int = 1
    cut: int = 0  # samples with values far beyond what its integers hold
    same: bool = False  # the same values in every sample


@dataclass(frozen=True)
class CheckReport:
    """The result of a check. `results` contains every gate; the check passes if all gates do."""

    model: str
    model_hash: str
    board: str
    quantize: str
    unit: str
    hertz: int
    samples: int
    outputs: tuple[OutputReport, ...]
    duration: Statistics | None
    init_ticks: int | None
    macs: int
    stack: Stack | None
    layers: tuple[LayerCost, ...]
    differences: tuple[LayerDifference, ...]
    looked_at: int
    memory: Mapping[str, int]
    results: tuple[GateResult, ...]
    modelled: Modelled | None = None
    beside: AcceleratorUse | None = None
    """The accelerator's counters."""

    @property
    def misses(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if not result.passed)

    @property
    def passed(self) -> bool:
        return not self.misses

    @property
    def cost_per_mac(self) -> float | None:
        return self.duration.mean / self.macs if self.duration is not None and self.macs else None
