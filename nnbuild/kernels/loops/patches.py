"""The inputs under a convolution's windows, laid out for one tile of two positions.

Where there is padding, the rows under one row of windows are first copied into a band with the zero point around
them, so that no window has a border. What lies side by side is taken four bytes at a time; the few inputs that are
left over at the ends of such runs come last, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.armv7em_dsp import PAIR64, PKHBT
from nnbuild.kernels.dsp.inputs import C_TYPE, STORE_TWO, copy, expand, fill
from nnbuild.kernels.dsp.weights import INPUT_ORDER, padded_taps
from nnbuild.kernels.window_loops import Axis, product, total, window_axes
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

MOST_LEFT_OVER = 48
"""Inputs that are taken one by one; with more, other kernels are shorter and no slower."""


@dataclass(frozen=True)
class Window:
    rows: Axis
    columns: Axis
    channels: int
    depth: int
    filters: int
    groups: int
    zero: int
    dtype: str

    @property
    def flat(self) -> bool:
        """Every position is computed alike from its own input alone: they are one long row."""
        axes = (self.rows, self.columns)
        return all(axis.kernel == 1 and axis.stride == 1 and axis.size == axis.places and not axis.pad for axis in axes)

    @property
    def taps(self) -> int:
        return self.rows.kernel * self.columns.kernel * self.depth

    @property
    def run(self) -> int:
        """Inputs that lie side by side under one row of taps, or under one tap."""
        return self.depth * (self.columns.kernel if self.contiguous else 1)

    @property
    def runs_across(self) -> int:
        """Runs under one row of taps."""
        return 1 if self.contiguous else self.columns.kernel

    @property
    def contiguous(self) -> bool:
        return self.groups == 1 and self.columns.dilation == 1

    @property
    def quads(self) -> int:
        """Of each run, what is taken four at a time."""
        return self.run // 4

    def left_over(self) -> list[tuple[int, int, int]]:
        """(row of taps, run in it, input in it) of all the others."""
        rest = range(4 * self.quads, self.run)
        return [(ky, kx, i) for ky in range(self.rows.kernel) for kx in range(self.runs_across) for i in rest]

    @property
    def pairs(self) -> int:
        whole = 4 * self.quads * self.rows.kernel * self.runs_across
        return (whole + padded_taps(len(self.left_over()))) // 2

    def order(self) -> Ints:
        """The taps in the order in which they are laid out; -1 where there is none."""
        places = np.arange(self.taps).reshape(-1, self.run)
        rest = places[:, 4 * self.quads :].reshape(-1)
        filled = np.pad(rest, (0, padded_taps(len(rest)) - len(rest)), constant_values=-1)
        return np.concatenate([places[:, : 4 * self.quads].reshape(-1), filled])

    @property
    def banded(self) -> bool:
        return not (self.rows.always_inside and self.columns.always_inside)

    @property
    def band_row(self) -> int:
        """Elements of a row of the band, which begins with the padding."""
        axis = self.columns
        return ((axis.places - 1) * axis.stride + spread(axis.kernel, axis.dilation)) * self.channels

    @property
    def rows_at_once(self) -> int:
        """Output rows of an odd width are taken two at a time, so that no tile is half empty."""
        return 2 if self.banded and self.columns.places % 2 and self.rows.dilation == 1 else 1

    @property
    def band_rows(self) -> int:
        return self.rows.kernel + (self.rows.stride if self.rows_at_once == 2 else 0)

    @property
    def band(self) -> int:
        return self.band_rows * self.band_row if self.banded else 0

    @property
    def width(self) -> int:
        """Positions in a row."""
        return self.rows.places * self.columns.places if self.flat else self.columns.places

    @property
    def pair_count(self) -> int:
        return -(-self.width // 2)


def window_of(site: Site[Conv2D]) -> Window:
    attributes = site.attributes
    rows, columns = window_axes(site)
    depth, filters = site.constant("kernel").shape[2:]
    return Window(
        rows,
        columns,
        site.shape()[2],
        depth,
        filters,
        attributes.groups,
        quant_of(site.inputs[0]).zero_point,
        site.inputs[0].dtype,
    )


def in_order(window: Window, weights: Ints) -> Ints:
    """[taps, channels] in the order of the inputs, with zeros where there is none."""
    order = window.order()
    return np.asarray(np.where(order[:, None] >= 0, weights[order], 0), np.int64)


def declare_band(w: Writer, window: Window) -> None:
    """The band behind the patch, all padding."""
    if window.banded:
        kind = C_TYPE[window.dtype]
        w(f"{kind} *const band = ({kind} *)(scratch + {window.pairs});")
        fill(w, window.dtype, "band", window.zero, window.band)


def fill_band(w: Writer, window: Window, source: str) -> None:
    """Copies the rows under the windows of output row y (or of two rows) into the band, between the padding."""
    if not window.banded:
        return
    kind, rows, columns = C_TYPE[window.dtype], window.rows, window.columns
    columns_taken = min(columns.size * window.channels, window.band_row - columns.pad * window.channels)
    if columns_taken <= 0:
        return
    inside = _share_inside(rows)
    lines: int | str = window.band_rows
    if window.rows_at_once == 2:  # the last row may be alone, and then nothing under the next one is read
        w(f"const int32_t lines = y + 1 < end ? {window.band_rows} : {rows.kernel};")
        lines = "lines"
    with w.loop("ky", lines, trips=window.band_rows):
        w(f"const int32_t row = {total(rows.position('y'), product('ky', rows.dilation))};")
        line = total(product("ky", window.band_row), str(columns.pad * window.channels))
        w(f"{kind} *to = band + {line};")
        w.bill(6)
        with w.block(f"if (row >= 0 && row < {rows.size})"), w.trips(inside):
            w(f"const {kind} *from = {source} + {product('row', columns.size * window.channels)};")
            copy(w, window.dtype, "to", "from", columns_taken)
        with w.block("else"), w.trips(1 - inside):
            fill(w, window.dtype, "to", window.zero, columns_taken)


def _share_inside(rows: Axis) -> float:
    """Of all rows under windows, those that exist."""
    under = [y * rows.stride - rows.pad + ky * rows.dilation for y in range(rows.places) for ky in range(rows.kernel)]
    return sum(0 <= row < rows.size for row in under) / len(under)


def lay_out(w: Writer, window: Window, source: str, group: str) -> None:
    """Prints what fills the patch for positions x and `next` of output row y."""
    kind = C_TYPE[window.dtype]
    along = product("x", window.columns.stride * window.channels)
    if window.banded:
        start, row_step = f"band + {along}", window.band_row
    else:
        row = window.columns.size * window.channels
        top = "0" if window.flat else product("y", window.rows.stride * row)
        start, row_step = f"{source} + {total(top, along)}", window.rows.dilation * row
    w(f"const {kind} *a = {start}{f' + {group}' if group else ''};")
    w(f"const {kind} *b = a + {product('next - x', window.columns.stride * window.channels)};")
    w.bill(6)
    if window.rows_at_once == 2:
        wrapped = row_step * window.rows.stride - window.columns.places * window.columns.stride * window.channels
        for name, place in (("a", "x"), ("b", "next")):
            with w.block(f"if ({place} >= {window.columns.places})"):
                w(f"{name} += {wrapped};")
        w.bill(5)
    run_step = window.columns.dilation * window.channels
    _left_over(w, window, row_step, run_step)
    if window.quads:
        _runs(w, window, row_step, run_step)


def _runs(w: Writer, window: Window, row_step: int, run_step: int) -> None:
    """What is taken four at a time, row by row and run by run."""
    w("int64_t *to = patch;")
    with _repeated(w, "ky", window.rows.kernel):
        with _repeated(w, "kx", window.runs_across):
            expand(w, window.dtype, "to", ("a", "b"), 4 * window.quads)
            if window.rows.kernel * window.runs_across > 1:
                w(f"to += {2 * window.quads};")
                w.bill(1)
            if window.runs_across > 1:
                w(f"a += {run_step};")
                w(f"b += {run_step};")
                w.bill(2)
        if window.rows.kernel > 1:
            by = row_step - (run_step * window.runs_across if window.runs_across > 1 else 0)
            w(f"a += {by};")
            w(f"b += {by};")
            w.bill(2)


@contextmanager
def _repeated(w: Writer, variable: str, count: int) -> Iterator[None]:
    if count == 1:
        yield
        return
    with w.loop(variable, count):
        yield


def _left_over(w: Writer, window: Window, row_step: int, run_step: int) -> None:
    """The inputs that are taken one by one, behind the others."""
    offsets = [ky * row_step + kx * run_step + i for ky, kx, i in window.left_over()]
    first = 2 * window.quads * window.rows.kernel * window.runs_across
    order = INPUT_ORDER[window.dtype]
    for at in range(0, len(offsets), 4):
        four = offsets[at : at + 4]
        for half in range(2):
            pair = [four[i] if i < len(four) else None for i in order[2 * half : 2 * half + 2]]
            words = [_pair(w, name, pair) for name in ("a", "b")]
            w(w.use(STORE_TWO, f"patch[{first + at // 2 + half}]", w.call(PAIR64, *words)))


def _pair(w: Writer, name: str, offsets: list[int | None]) -> str:
    """Two single inputs as one word; the low half of the first needs no more than its 16 bits."""
    first, second = (None if offset is None else f"{name}[{offset}]" for offset in offsets)
    if first is None:
        return "0"
    w.bill(3 if second else 2)
    return w.call(PKHBT, first, second or "0")
