"""The weights, their compression, and its cost in accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.report.table import render


@dataclass(frozen=True)
class WeightRow:
    """One weight matrix. `kind`: how it can be stored in fewer bytes; `asked`: the request; `lost`: the lost share
    of the layer's signal; bytes are those of the whole operation, counted with its first weights."""

    layer: str
    role: str
    count: int
    zeros: int
    distinct: int
    kind: str
    asked: str
    lost: float
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Stage:
    """The accuracy of one form of the model, in percentage points."""

    name: str
    value: float


@dataclass(frozen=True)
class Weights:
    """`path` is measured by `measure` on `samples`, which were not used for fitting if `apart`. It is empty without
    a request."""

    rows: tuple[WeightRow, ...]
    asked: str
    measure: str
    samples: int
    apart: bool
    path: tuple[Stage, ...]
    bytes_before: int
    bytes_after: int

    @property
    def sparsity(self) -> float:
        return sum(row.zeros for row in self.rows) / max(1, sum(row.count for row in self.rows))

    @property
    def words(self) -> str:
        """The path from the original model to the stored one."""
        steps = " → ".join(f"{stage.name} {stage.value:.2f}" for stage in self.path)
        which = "samples that were not used for fitting" if self.apart else "the samples used for fitting"
        return f"{self.measure}, in %: {steps} ({self.samples:,} samples, {which})"


def per_kilobyte(row: WeightRow) -> float | None:
    """The lost share of the layer's signal per saved kilobyte."""
    saved = row.bytes_before - row.bytes_after
    return 1024 * row.lost / saved if row.asked and saved > 0 else None


def weights_text(weights: Weights) -> str:
    """A table of the cost per byte, and the path of accuracy."""
    rows = []
    for row in weights.rows:
        cost = per_kilobyte(row)
        rows.append(
            [
                row.layer if row.role == "kernel" else f"{row.layer} ({row.role})",
                row.asked or row.kind or "as it is",
                f"{row.count:,}",
                f"{row.zeros / max(1, row.count):.0%}",
                str(row.distinct),
                f"{row.bytes_before:,}" if row.bytes_before else "",
                f"{row.bytes_after:,}" if row.bytes_after else "",
                f"{100 * row.lost:.2f}" if row.asked else "",
                f"{100 * cost:.2f}" if cost is not None else "",
            ]
        )
    heads = ["weights of", "stored", "weights", "zeros", "values", "bytes before", "after", "% lost", "% a KB saved"]
    count = sum(row.count for row in weights.rows)
    total = [f"{weights.bytes_before:,}", f"{weights.bytes_after:,}"]
    foot = ["whole model", "", f"{count:,}", f"{weights.sparsity:.0%}", "", *total, "", ""]
    return f"{render(heads, rows, 2, foot)}\n{weights.words}"
