"""Output rows in strips; the input rows under a strip are copied first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nnbuild.base.writer import Writer
from nnbuild.kernels.loops.window import Window

STRIP_BYTES = 20 * 1024
"""Bytes of input copied at a time: less than half of a small first-level cache."""


def strip_rows(window: Window, line_bytes: int) -> int:
    """Output rows whose input rows, of `line_bytes` each, are copied together; strips are of about equal size."""
    rows, _ = window.outputs
    most = max(1, (STRIP_BYTES // line_bytes - window.rows_under(1)) // window.row_step + 1)
    return -(-rows // -(-rows // most))


@contextmanager
def each_strip_of_rows(w: Writer, window: Window, size: int) -> Iterator[None]:
    """The loop `strip` over strips of `size` output rows; `rows` is the number in this one."""
    with w.loop("strip", "end", start="begin", step=size, trips=-(-window.outputs[0] // size)):
        w(f"const int32_t rows = end - strip < {size} ? end - strip : {size};")
        yield


def copy_strip(
    w: Writer, window: Window, size: int, line: str, copy: Callable[[str], None], blank: Callable[[], None] | None
) -> None:
    """Copies the input rows under a strip. line: declares the destination of a row. copy: is given the input row.
    blank: fills a row outside the input; None where there are none."""
    rows = f"(rows - 1) * {window.row_step} + {window.rows_under(1)}"
    with w.loop("y", rows, trips=window.rows_under(size)):
        w(line)
        row = f"strip * {window.row_step} + y"
        if blank is None:
            copy(row)
            return
        w(f"const int32_t row = {row} - {window.rows.pad};")
        with w.block(f"if (row >= 0 && row < {window.rows.size})"):
            copy("row")
        with w.block("else"), w.trips(0):
            blank()
