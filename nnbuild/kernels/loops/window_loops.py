"""Loops over the outputs and taps of a sliding window, with the borders kept out of the interior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nnbuild.base.writer import Writer
from nnbuild.kernels.loops.window import Axis, Strip, Window


@contextmanager
def each_row(w: Writer, rows: Axis, counted: bool = True, bounds: tuple[str, str] = ("begin", "end")) -> Iterator[None]:
    """The loop `y` over the range of output rows; `top` is the input row of tap 0.

    `counted` declares the real taps, where a window may reach beyond the input.
    """
    with w.loop("y", bounds[1], start=bounds[0], trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if counted and not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        yield


@contextmanager
def each_position(w: Writer, columns: Axis) -> Iterator[None]:
    """The loop `x` over the outputs of a row; `left` is the input column of tap 0."""
    with w.loop("x", columns.places):
        w(f"const int32_t left = {columns.position('x')};")
        if not columns.always_inside:
            declare_taps(w, columns, "left", "kx_begin", "kx_end")
        yield


@contextmanager
def each_strip(w: Writer, strip: Strip) -> Iterator[str]:
    """The loop `x` over strips of outputs, or a block for a single one; yields the index of its first output."""
    with w.loop("x", strip.stop, start=strip.place, step=strip.size) if strip.count > 1 else w.block(""):
        yield "x" if strip.count > 1 else str(strip.place)


def repeated(w: Writer, variable: str, count: int, block: bool = False) -> AbstractContextManager[None]:
    """A loop; a single iteration prints no loop, or a block."""
    return w.loop(variable, count) if count > 1 else w.block("") if block else nullcontext()


@contextmanager
def in_range(w: Writer, first: int, count: int) -> Iterator[None]:
    """A block for the part of the range within work items [first, first + count): from `first` to `last`."""
    with w.block(""):
        w(f"const int32_t first = begin > {first} ? begin : {first};")
        w(f"const int32_t last = end < {first + count} ? end : {first + count};")
        w.bill(8)
        with w.block("if (first < last)"):
            yield


def with_last(w: Writer, index: str, whole: int, usual: Callable[[], None], last: Callable[[], None] | None) -> None:
    """Prints `usual` for an index below `whole`, and `last` for the one behind, if any."""
    if last is None:
        usual()
        return
    with w.block(f"if ({index} < {whole})"), w.trips(whole / (whole + 1)):
        usual()
    with w.block("else"), w.trips(1 / (whole + 1)):
        last()


def declare_taps(w: Writer, axis: Axis, at: str, first: str, last: str) -> None:
    """Declares the taps [first, last) of a window at `at` that lie on real inputs."""
    if axis.dilation == 1:
        w(f"const int32_t {first} = {at} < 0 ? -{at} : 0;")
        w(f"const int32_t {last} = {axis.size} - {at} < {axis.kernel} ? {axis.size} - {at} : {axis.kernel};")
        return
    d = axis.dilation
    w(f"const int32_t {first} = {at} < 0 ? ({d - 1} - {at}) / {d} : 0;")
    w(f"const int32_t left_{last} = ({axis.size + d - 1} - {at}) / {d};")
    w(f"const int32_t {last} = left_{last} < {axis.kernel} ? left_{last} : {axis.kernel};")


def row_taps(w: Writer, rows: Axis) -> AbstractContextManager[None]:
    """The loop `ky` over the taps of a row window that `each_row` has counted."""
    return _taps(w, rows, "ky")


def column_taps(w: Writer, columns: Axis) -> AbstractContextManager[None]:
    """The loop `kx` over the taps of a column window that `each_position` has counted."""
    return _taps(w, columns, "kx")


def _taps(w: Writer, axis: Axis, name: str) -> AbstractContextManager[None]:
    if axis.always_inside:
        return w.loop(name, axis.kernel)
    return w.loop(name, f"{name}_end", start=f"{name}_begin", trips=axis.kernel)


def taps_count(axis: Axis, name: str) -> str:
    """The number of taps on real inputs."""
    return str(axis.kernel) if axis.always_inside else f"({name}_end - {name}_begin)"


def product(*factors: str | int) -> str:
    """a * b * c, with constants multiplied and factors of 1 left out."""
    number, names = 1, []
    for factor in factors:
        if isinstance(factor, int):
            number *= factor
        else:
            names.append(f"({factor})" if " " in factor else factor)
    if number == 0:
        return "0"
    return " * ".join([*names, str(number)] if number != 1 or not names else names)


def total(*terms: str) -> str:
    """a + b + c, without zeros."""
    kept = [term for term in terms if term != "0"]
    return " + ".join(kept) if kept else "0"


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
