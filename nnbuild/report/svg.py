"""Prints a picture as SVG, for a page that defines the paints."""

from __future__ import annotations

from html import escape

from nnbuild.report.picture import Box, Curve, Label, Line, Picture, Shape


def to_svg(picture: Picture, name: str, css: str = "") -> str:
    """`name` must be unique within a page."""
    inside = "".join(_shape(shape) for shape in picture.shapes)
    return (
        f'<svg class="{escape(css)}" viewBox="0 0 {_n(picture.width)} {_n(picture.height)}" role="img" '
        f'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escape(picture.title)}</title>'
        f'<desc id="{name}-d">{escape(picture.description)}</desc>{inside}</svg>'
    )


def _n(number: float) -> str:
    """At most one decimal: small pictures, equal on every machine."""
    return f"{number:.1f}".removesuffix(".0")


def _shape(shape: Shape) -> str:
    match shape:
        case Box():
            return _box(shape)
        case Line():
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
            return f'<polyline points="{points}" {_stroke(shape.paint, shape.width, shape.dashed)}/>'
        case Curve():
            middle = (shape.y1 + shape.y2) / 2
            path = (
                f"M{_n(shape.x1)},{_n(shape.y1)}C{_n(shape.x1)},{_n(middle)} {_n(shape.x2)},{_n(middle)} "
                f"{_n(shape.x2)},{_n(shape.y2)}"
            )
            return f'<path d="{path}" {_stroke(shape.paint, shape.width, False)}/>'
        case Label():
            return _label(shape)


def _stroke(paint: str, width: float, dashed: bool) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'fill="none" stroke="var(--{paint})" stroke-width="{_n(width)}"{dashes}'


def _box(box: Box) -> str:
    words = [f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"']
    words.append(f'fill="var(--{box.paint})"' if box.paint else 'fill="none"')
    words += [f'rx="{_n(box.radius)}"'] if box.radius else []
    words += [f'stroke="var(--{box.outline})"'] if box.outline else []
    words += ['stroke-dasharray="4 3"'] if box.dashed else []
    words += [f'fill-opacity="{box.opacity:.2f}"'] if box.opacity != 1 else []
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    return f"<rect {' '.join(words)}>{title}</rect>" if title else f"<rect {' '.join(words)}/>"


def _label(label: Label) -> str:
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    bold = ' font-weight="600"' if label.bold else ""
    return (
        f'<text x="{_n(label.x)}" y="{_n(label.y)}" font-size="{_n(label.size)}" '
        f'fill="var(--{label.paint})"{anchor}{bold}>{escape(label.text)}</text>'
    )
