"""The HTML elements of the page. Text is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from nnbuild.report.number_format import middled

LONGEST_NAME = 26


@dataclass(frozen=True)
class Cell:
    """`under` is a second, softer line; `bar` a share from 0 to 1, drawn in that line; `heat` colours the cell by a
    share; `code` marks code and hashes; `tone` is an additional class such as good, bad or warn."""

    text: str
    under: str = ""
    number: bool = False
    bar: float | None = None
    tone: str = ""
    heat: float | None = None
    code: bool = False


def number(text: str, under: str = "", bar: float | None = None) -> Cell:
    return Cell(text, under, number=True, bar=bar)


Row = Sequence[Cell | str]


def table(caption: str, heads: Row, rows: Sequence[Row], foot: Row | None = None, css: str = "") -> str:
    """The first cell of each row is its head. A table wider than the page scrolls separately."""
    head = "".join(_head(cell, "col") for cell in heads)
    body = "".join(_row(row) for row in rows)
    end = f"<tfoot>{_row(foot)}</tfoot>" if foot else ""
    name = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}"><table class="{css}">'
        f"<caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{end}</table></div>"
    )


def _row(cells: Row) -> str:
    return f"<tr>{_head(cells[0], 'row')}{''.join(_cell(cell) for cell in cells[1:])}</tr>"


def _head(cell: Cell | str, scope: str) -> str:
    """A name on one line; the middle of a long one is omitted, with the whole name as a tooltip."""
    cell = cell if isinstance(cell, Cell) else Cell(cell)
    most = LONGEST_NAME if scope == "row" else len(cell.text)
    whole = f' title="{escape(cell.text)}"' if len(cell.text) > most else ""
    shown = replace(cell, text=middled(cell.text, most))
    return f'<th scope="{scope}"{_classes(cell)}{whole}>{_inside(shown)}</th>'


def _cell(cell: Cell | str) -> str:
    cell = cell if isinstance(cell, Cell) else Cell(cell)
    heat = f' style="--heat:{100 * cell.heat:.0f}%"' if cell.heat is not None else ""
    return f"<td{_classes(cell)}{heat}>{_inside(cell)}</td>"


def _classes(cell: Cell) -> str:
    names = [
        name for name, holds in (("n", cell.number), ("code", cell.code), ("heat", cell.heat is not None)) if holds
    ]
    names += [cell.tone] if cell.tone else []
    return f' class="{" ".join(names)}"' if names else ""


def _inside(cell: Cell) -> str:
    text, under = escape(cell.text), escape(cell.under)
    if cell.bar is not None:
        return f'{text}<small class="with">{bar(cell.bar)}<span>{under}</span></small>'
    return text + (f"<small>{under}</small>" if under else "")


def bar(share: float) -> str:
    """Decoration only: the number beside it gives the same information."""
    return f'<i class="bar" aria-hidden="true"><b style="width:{100 * min(1.0, max(0.0, share)):.1f}%"></b></i>'


def paragraph(text: str, css: str = "") -> str:
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def section(anchor: str, title: str, *parts: str) -> str:
    inside = "\n".join(part for part in parts if part)
    head = f'<h2 id="{anchor}-h">{escape(title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-h">{head}\n{inside}\n</section>'


def bullets(items: Sequence[str], css: str = "") -> str:
    return f'<ul class="{css}">{"".join(f"<li>{escape(item)}</li>" for item in items)}</ul>' if items else ""
