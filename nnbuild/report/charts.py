"""The page's tables as pictures: cost and error by layer, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.report.facts import Facts
from nnbuild.report.number_format import clipped, percent, whole
from nnbuild.report.palette import paint_of
from nnbuild.report.picture import Box, Label, Picture, Shape

WIDTH, ROW, LEFT, RIGHT = 720.0, 24.0, 230.0, 150.0


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    text: str
    paint: str


def cost_chart(facts: Facts) -> Picture:
    total = sum(layer.weight for layer in facts.layers) or 1.0
    bars = [
        Bar(
            layer.name,
            layer.weight,
            f"{whole(layer.weight)}  {percent(layer.weight / total)}",
            paint_of(layer.op.split(" + ")[0]),
        )
        for layer in facts.layers
    ]
    return _bars(f"Cost of each layer in {facts.unit}", bars)


def error_chart(facts: Facts) -> Picture | None:
    if facts.quantization is None:
        return None
    bars = [
        Bar(x.layer, x.sqnr or 0.0, f"{x.sqnr:.1f} dB" if x.sqnr is not None else "exact", "bar")
        for x in facts.quantization.layers
    ]
    return _bars("Signal to quantization noise of each layer", bars)


def _bars(title: str, bars: Sequence[Bar]) -> Picture:
    most = max((bar.value for bar in bars), default=0.0) or 1.0
    room = WIDTH - LEFT - RIGHT
    shapes: list[Shape] = [Label(0, 20, title, "ink", 15, bold=True)]
    for index, bar in enumerate(bars):
        y = 34 + index * ROW
        size = max(1.0, room * bar.value / most)
        shapes += [
            Label(LEFT - 8, y + 15, clipped(bar.name, LEFT - 10, 12), "ink", 12, "end"),
            Box(LEFT, y + 3, size, ROW - 7, bar.paint, radius=2),
            Label(LEFT + size + 6, y + 15, bar.text, "soft", 12),
        ]
    described = "; ".join(f"{bar.name} {bar.text}" for bar in bars)
    return Picture(WIDTH, 40 + ROW * len(bars), title, described, tuple(shapes))


def confusion_chart(matrix: Sequence[Sequence[int]], output: str) -> Picture:
    """Darker cells have a larger share of their row; counts are shown where there is room."""
    count = len(matrix)
    side = max(2.0, min(40.0, 640 / count))
    left, top = 60.0, 64.0
    title = f"Confusion matrix of {output}"
    shapes: list[Shape] = [
        Label(0, 20, title, "ink", 15, bold=True),
        Label(0, 40, "one row per label, one column per predicted class", "soft", 12),
    ]
    for label, row in enumerate(matrix):
        most = sum(row) or 1
        if side >= 12:
            shapes.append(Label(left - 8, top + (label + 0.65) * side, str(label), "soft", 11, "end"))
            shapes.append(Label(left + (label + 0.5) * side, top - 6, str(label), "soft", 11, "middle"))
        for found, number in enumerate(row):
            x, y = left + found * side, top + label * side
            shapes.append(Box(x, y, side, side, "bar", outline="rule", opacity=0.9 * number / most))
            if number and side >= 22:
                shapes.append(Label(x + side / 2, y + side * 0.64, str(number), "ink", 11, "middle"))
    right = sum(row[label] for label, row in enumerate(matrix))
    return Picture(left + side * count + 8, top + side * count + 8, title, f"{right} are right", tuple(shapes))
