"""The arena during a run: one box per buffer, steps from left to right, addresses from bottom to top."""

from __future__ import annotations

from collections.abc import Iterator

from nnbuild.report.facts import Buffer, Facts
from nnbuild.report.number_format import BOLD, clipped, kilobytes, width_of
from nnbuild.report.picture import Box, Label, Line, Picture, Shape

WIDE, NARROW = 1060.0, 350.0
TOP, BOTTOM = 26.0, 34.0
THIN = 14.0
"""Height of a line of text with its margins, in points."""
PAINTS = {"input": "given", "output": "output", "scratch": "scratch"}


class _Scale:
    """Converts steps and bytes to positions in the picture."""

    def __init__(self, facts: Facts, width: float) -> None:
        self.left = 58.0 if width > 600 else 54.0
        self.width, self.height = width, 330.0 if width > 600 else 300.0
        self.first = min((b.first for b in facts.buffers), default=0)
        self.steps = max((b.last for b in facts.buffers), default=0) - self.first + 1
        self.bytes = max(facts.arena, 1)

    @property
    def column(self) -> float:
        return (self.width - self.left - 2) / self.steps

    def x(self, step: float) -> float:
        return self.left + (step - self.first) * self.column

    def y(self, offset: float) -> float:
        return TOP + (self.height - TOP - BOTTOM) * (1 - offset / self.bytes)


def timeline(facts: Facts, wide: bool = True) -> Picture:
    scale = _Scale(facts, WIDE if wide else NARROW)
    shapes = list(_axes(facts, scale))
    for index, buffer in enumerate(sorted(facts.buffers, key=lambda buffer: buffer.role)):
        shapes += _buffer(buffer, scale, index)
    shapes += [*_overlaps(facts.buffers, scale), *_peak_band(facts, scale)]
    shapes += _names(facts.buffers, scale)
    shapes += _peak_mark(facts, scale)
    return Picture(scale.width, scale.height, "The arena during one run", _in_words(facts), tuple(shapes))


def _in_words(facts: Facts) -> str:
    most = facts.peak
    fullest = f" It is fullest at step {most.step}, {most.layer}: {most.size:,} bytes in use." if most else ""
    shared = sum(1 for buffer in facts.buffers if buffer.overlaps)
    return (
        f"{len(facts.buffers)} buffers in {facts.arena:,} bytes over {len(facts.layers)} steps.{fullest} "
        f"{shared} of them share bytes with another live buffer. The following table lists all."
    )


def _axes(facts: Facts, scale: _Scale) -> Iterator[Shape]:
    for part in range(5):
        offset = facts.arena * part / 4
        y = scale.y(offset)
        yield Line(((scale.left, y), (scale.width - 2, y)), "rule", dashed=part not in (0, 4))
        yield Label(scale.left - 6, y + 4, _address(offset, facts.arena), "soft", 11, "end")
    every = 1
    while every * scale.column < 24:
        every *= 5 if str(every)[0] == "1" else 2
    for step in range(0, len(facts.layers), every):
        yield Label(scale.x(step + 0.5), scale.height - BOTTOM + 15, str(step), "soft", 11, "middle")
    words = (
        "step"
        if scale.width < 600
        else "step: a buffer is live from the step that writes it to the last step that reads it"
    )
    yield Label((scale.left + scale.width) / 2, scale.height - 4, words, "soft", 11, "middle")


def _address(offset: float, arena: int) -> str:
    """All in one unit, that of the largest."""
    if arena < 10_000:
        return f"{offset:,.0f}"
    size, unit = (1024, "KB") if arena < 1024 * 1024 else (1024 * 1024, "MB")
    figures = 0 if arena >= 100 * size else 1
    return f"{offset / size:,.{figures}f}".removesuffix(".0") + f" {unit}"


def _peak_band(facts: Facts, scale: _Scale) -> Iterator[Shape]:
    if facts.peak is not None:
        yield Box(scale.x(facts.peak.step), TOP, scale.column, scale.y(0) - TOP, "peak", opacity=0.1)


def _peak_mark(facts: Facts, scale: _Scale) -> Iterator[Shape]:
    if facts.peak is None:
        return
    x1, x2 = scale.x(facts.peak.step), scale.x(facts.peak.step + 1)
    for x in (x1, x2):
        yield Line(((x, TOP - 4), (x, scale.y(0))), "peak", 1.5)
    text = f"peak {kilobytes(facts.peak.size)}"
    if scale.width > 600:
        text = clipped(f"{text} in {facts.peak.layer}", 500, BOLD * 12)
    half = BOLD * width_of(text, 12) / 2
    middle = min(max((x1 + x2) / 2, scale.left + half), scale.width - half)
    yield Label(middle, TOP - 10, text, "peak", 12, "middle", True)


def _buffer(buffer: Buffer, scale: _Scale, index: int) -> Iterator[Shape]:
    paint = PAINTS.get(buffer.role, "tensor" if index % 2 else "tensor-b")
    x, y = scale.x(buffer.first), scale.y(buffer.offset + buffer.size)
    width, height = scale.x(buffer.last + 1) - x, scale.y(buffer.offset) - y
    title = f"{buffer.name}: {buffer.size:,} bytes at {buffer.offset:,}, steps {max(buffer.first, 0)} to {buffer.last}"
    yield Box(
        x,
        min(y, y + height - 2.5),
        width,
        max(height, 2.5),
        paint,
        title,
        2.0 if height > 6 else 0.0,
        "paper",
    )


def slivers(facts: Facts) -> tuple[Buffer, ...]:
    """The buffers that are too thin for a name in the wide picture."""
    scale = _Scale(facts, WIDE)
    return tuple(b for b in facts.buffers if scale.y(b.offset) - scale.y(b.offset + b.size) < THIN)


def _names(buffers: tuple[Buffer, ...], scale: _Scale) -> Iterator[Shape]:
    """Name and size, where readable: buffers that share bytes must not share a line of text."""
    taken: list[tuple[float, float, float]] = []  # left, right, base line
    for buffer in buffers:
        x, y = scale.x(buffer.first) + 5, scale.y(buffer.offset + buffer.size)
        width, bottom = scale.x(buffer.last + 1) - x - 3, scale.y(buffer.offset)
        name = "scratch" if buffer.role == "scratch" else buffer.name
        lines = [clipped(name, width, 11, tail=True), kilobytes(buffer.size)] if width >= 36 else []
        for text, size in zip(lines, (11.0, 10.0), strict=False):
            right = x + width_of(text, size)
            base = y + 12
            while any(left < right and x < end and abs(base - other) < 12 for left, end, other in taken):
                base += 4
            if base > bottom - 2 or right > x + width + 2:
                break
            taken.append((x, right, base))
            yield Label(x, base, text, "ink", size)
            y = base


def _overlaps(buffers: tuple[Buffer, ...], scale: _Scale) -> Iterator[Shape]:
    """Bytes of two buffers in the same step: one overwrites the other while reading it."""
    known = {buffer.name: buffer for buffer in buffers}
    for a in buffers:
        for b in (known[name] for name in a.overlaps if name > a.name):
            first, last = max(a.first, b.first), min(a.last, b.last)
            low, high = max(a.offset, b.offset), min(a.offset + a.size, b.offset + b.size)
            x, y = scale.x(first), scale.y(high)
            title = f"{a.name} and {b.name} share {high - low:,} bytes"
            size = scale.x(last + 1) - x, max(scale.y(low) - y, 1.0)
            yield Box(x, y, *size, "overlap", title, 0, "overlap", True, 0.2)
