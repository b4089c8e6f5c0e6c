"""Sizes of stored constants compared with the model's parameters, and the time that additional bytes save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nnbuild.report.table import render

MUCH = 1.15
"""Ratio to the parameters' bytes above which a layer is reported."""


@dataclass(frozen=True)
class ConstantSizes:
    """One layer: the bytes of its parameters (weights, biases, the channels' scales), and those that its kernel reads.

    `instead` is the fastest kernel within MUCH of the parameters, otherwise the one with the fewest bytes; it would
    take `gained` more cycles, by the plan's price.
    """

    layer: str
    kernel: str
    parameters: int
    stored: int
    instead: str
    gained: float

    @property
    def times(self) -> float:
        return self.stored / self.parameters

    @property
    def much(self) -> bool:
        return self.parameters > 0 and self.times > MUCH


def constants_text(layers: Sequence[ConstantSizes]) -> str:
    """The totals, and the layers whose constants are much larger than their parameters."""
    parameters, stored = sum(each.parameters for each in layers), sum(each.stored for each in layers)
    if not parameters:
        return ""
    whole = f"constants  {stored:,} bytes, {stored / parameters:.2f} of the parameters' {parameters:,}\n"
    rows = [_row(each) for each in layers if each.much]
    if not rows:
        return whole
    heads = ["layer", "kernel", "parameters", "stored", "times", "instead of", "cycles gained"]
    words = f"Above {MUCH} of their parameters, and the cycles that this saves, as estimated:"
    return f"{whole}\n{words}\n\n{render(heads, rows, 2)}\n"


def _row(each: ConstantSizes) -> list[str]:
    sizes = [f"{each.parameters:,}", f"{each.stored:,}", f"{each.times:.2f}"]
    return [each.layer, each.kernel, *sizes, each.instead, f"{each.gained:,.0f}" if each.instead else ""]


def constants_objects(layers: Sequence[ConstantSizes]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.layer,
            "parameters": each.parameters,
            "stored": each.stored,
            "instead": each.instead,
            "cycles_gained": each.gained,
        }
        for each in layers
        if each.parameters
    ]
