"""A picture as a value: shapes with the names of paints, printed as SVG in the page or drawn as PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    paint: str
    title: str = ""
    radius: float = 0.0
    outline: str = ""
    dashed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Line:
    """A straight line between points."""

    points: tuple[tuple[float, float], ...]
    paint: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True)
class Curve:
    """A curve down from one point to another, vertical at both ends."""

    x1: float
    y1: float
    x2: float
    y2: float
    paint: str
    width: float = 1.0


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    text: str
    paint: str = "ink"
    size: float = 12.0
    anchor: Anchor = "start"
    bold: bool = False


Shape = Box | Line | Curve | Label


@dataclass(frozen=True)
class Picture:
    """`title` names it, `description` describes it in words."""

    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...]
