"""Plain tables: columns as wide as their contents, numbers aligned right."""

from __future__ import annotations

from collections.abc import Sequence


def render(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int, foot: Sequence[str] | None = None) -> str:
    """A table whose first `left` columns are text and the rest numbers; `foot` is a last row under a line."""
    everything = [heads, *rows, *([foot] if foot else [])]
    widths = [max(len(row[column]) for row in everything) for column in range(len(heads))]
    ruler = "  ".join("─" * width for width in widths)
    lines = [_line(heads, widths, left), ruler, *(_line(row, widths, left) for row in rows)]
    if foot:
        lines += [ruler, _line(foot, widths, left)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
