"""The pictures as PNG files, for documents or talks, drawn by matplotlib from the page's shapes."""

from __future__ import annotations

import importlib.util
import io
import warnings
from pathlib import Path
from typing import Any

from nnbuild.base.errors import ToolMissing
from nnbuild.base.files import make_folder, write_together
from nnbuild.report.charts import confusion_chart, cost_chart, error_chart
from nnbuild.report.facts import Facts
from nnbuild.report.network import whole
from nnbuild.report.palette import PAINTS
from nnbuild.report.picture import Box, Curve, Label, Line, Picture, Shape
from nnbuild.report.timeline import timeline

SCALE = 2.0
"""Pixels per unit of a picture."""
MARGIN = 16.0
TALLEST = 16_000.0
"""Maximum height in units; picture viewers fail above that."""


def pictures(facts: Facts) -> dict[str, Picture]:
    """File name -> picture, for those with content."""
    found = {"network.png": whole(facts.nodes, facts.name), "layers.png": cost_chart(facts)}
    if facts.buffers:
        found["memory.png"] = timeline(facts)
    error = error_chart(facts)
    if error is not None:
        found["quantization.png"] = error
    for output in facts.check.outputs if facts.check is not None else ():
        if output.confusion is not None:
            found["confusion.png"] = confusion_chart(output.confusion, output.name)
    return found


def require() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ToolMissing("--png", "the pictures need matplotlib, which is not installed.", "pip install matplotlib")


def write_pictures(facts: Facts, folder: Path) -> list[Path]:
    make_folder(folder)
    files = {folder / name: draw(picture) for name, picture in pictures(facts).items()}
    write_together(files)
    return list(files)


def draw(picture: Picture) -> bytes:
    from matplotlib.figure import Figure

    width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    scale = SCALE * min(1.0, TALLEST / height)
    figure = Figure(figsize=(width * scale / 100, height * scale / 100), dpi=100, facecolor=_light("paper"))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-MARGIN, picture.width + MARGIN)
    axes.set_ylim(picture.height + MARGIN, -MARGIN)
    axes.axis("off")
    for order, shape in enumerate(picture.shapes):
        _shape(axes, shape, scale, order)
    content = io.BytesIO()
    with warnings.catch_warnings():  # of letters in names that the font lacks: it draws a sign in their place
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def _light(paint: str) -> str:
    return PAINTS[paint][0]


def _shape(axes: Any, shape: Shape, scale: float, order: int) -> None:
    """matplotlib measures lines and letters in points, 72 of which make an inch of 100 pixels."""
    points = 0.72 * scale
    match shape:
        case Box():
            _box(axes, shape, points, order)
        case Line():
            xs, ys = zip(*shape.points, strict=True)
            style = "--" if shape.dashed else "-"
            axes.plot(xs, ys, style, color=_light(shape.paint), linewidth=shape.width * points, zorder=order)
        case Curve():
            _curve(axes, shape, points, order)
        case Label():
            axes.text(
                shape.x,
                shape.y,
                shape.text.replace("$", r"\$"),
                color=_light(shape.paint),
                fontsize=0.96 * shape.size * points,
                fontweight="bold" if shape.bold else "normal",
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                va="baseline",
                zorder=order,
            )


def _box(axes: Any, box: Box, points: float, order: int) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    radius = min(box.radius, box.width / 2, box.height / 2)
    axes.add_patch(
        FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={radius}" if radius else "square,pad=0",
            facecolor=to_rgba(_light(box.paint), box.opacity),
            edgecolor=_light(box.outline) if box.outline else "none",
            linewidth=points if box.outline else 0,
            linestyle="--" if box.dashed else "-",
            zorder=order,
        )
    )


def _curve(axes: Any, curve: Curve, points: float, order: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Way

    middle = (curve.y1 + curve.y2) / 2
    way = Way(
        [(curve.x1, curve.y1), (curve.x1, middle), (curve.x2, middle), (curve.x2, curve.y2)],
        [Way.MOVETO, Way.CURVE4, Way.CURVE4, Way.CURVE4],
    )
    patch = PathPatch(
        way, facecolor="none", edgecolor=_light(curve.paint), linewidth=curve.width * points, zorder=order
    )
    axes.add_patch(patch)
