"""The inputs under a convolution's windows, laid out for one tile of two positions.

With padding, the rows under one row of windows are first copied into a band, surrounded by the zero point, so that no
window has a border. Contiguous inputs are taken four bytes at a time; remaining inputs of each run come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp.input_layouts import STORE_TWO, copy, expand, fill
from nnbuild.kernels.dsp.weight_layouts import INPUT_ORDER, padded_taps
from nnbuild.kernels.loops.window import Window
from nnbuild.kernels.loops.window_loops import product, repeated, total
from nnbuild.numeric.rounding import Ints


@dataclass(frozen=True)
class Patch:
    window: Window
    zero: int
    dtype: str
    apart: bool = False
    """Whether words are stored one by one, in fewer cycles and more instructions."""

    @property
    def quads(self) -> int:
        """Groups of four inputs in each run."""
        return self.window.run // 4

    @property
    def whole(self) -> int:
        """Inputs taken four at a time."""
        return 4 * self.quads * self.window.rows.kernel * self.window.runs

    def left_over(self) -> list[tuple[int, int, int]]:
        """(row of taps, run, input) of all remaining inputs."""
        rest = range(4 * self.quads, self.window.run)
        return [(ky, kx, i) for ky in range(self.window.rows.kernel) for kx in range(self.window.runs) for i in rest]

    @property
    def pairs(self) -> int:
        return (self.whole + padded_taps(len(self.left_over()))) // 2

    def in_order(self, weights: Ints) -> Ints:
        """[taps, channels] in the order of the inputs, with zeros for padding."""
        places = np.arange(self.window.taps).reshape(-1, self.window.run)
        rest = places[:, 4 * self.quads :].reshape(-1)
        filled = np.pad(rest, (0, padded_taps(len(rest)) - len(rest)), constant_values=-1)
        order = np.concatenate([places[:, : 4 * self.quads].reshape(-1), filled])
        return np.asarray(np.where(order[:, None] >= 0, weights[order], 0), np.int64)

    @property
    def banded(self) -> bool:
        return not self.window.inside

    @property
    def rows_at_once(self) -> int:
        """Output rows of an odd width are taken two at a time, so that no tile is half empty."""
        return 2 if self.banded and self.window.columns.places % 2 and self.window.rows.dilation == 1 else 1

    @property
    def band_rows(self) -> int:
        rows = self.window.rows
        return rows.kernel + (rows.stride if self.rows_at_once == 2 else 0)

    @property
    def band(self) -> int:
        return self.band_rows * self.window.padded_line if self.banded else 0

    def declare_band(self, w: Writer) -> None:
        """Declares the band behind the patch and fills it with padding."""
        if self.banded:
            kind = C_TYPES[self.dtype]
            w(f"{kind} *const band = ({kind} *)(scratch + {self.pairs});")
            fill(w, self.dtype, "band", self.zero, self.band)

    def fill_band(self, w: Writer, source: str) -> None:
        """Copies the rows under the windows of output row y (or of two rows) into the band."""
        window, rows, columns = self.window, self.window.rows, self.window.columns
        taken = columns.taken * window.channels
        if not self.banded or taken <= 0:
            return
        kind, inside = C_TYPES[self.dtype], rows.inside_share
        lines: int | str = self.band_rows
        if self.rows_at_once == 2:  # the last row may be single; then nothing under the next one is read
            w(f"const int32_t lines = y + 1 < end ? {self.band_rows} : {rows.kernel};")
            lines = "lines"
        with w.loop("ky", lines, trips=self.band_rows):
            w(f"const int32_t row = {total(rows.position('y'), product('ky', rows.dilation))};")
            line = total(product("ky", window.padded_line), str(columns.pad * window.channels))
            w(f"{kind} *to = band + {line};")
            w.bill(6)
            with w.block(f"if (row >= 0 && row < {rows.size})"), w.trips(inside):
                w(f"const {kind} *from = {source} + {product('row', window.line)};")
                copy(w, self.dtype, "to", "from", taken)
            with w.block("else"), w.trips(1 - inside):
                fill(w, self.dtype, "to", self.zero, taken)

    def lay_out(self, w: Writer, source: str, group: str, names: tuple[str, ...] = ("a", "b")) -> None:
        """Prints what fills the patch for positions x and `next` of output row y, or for x alone."""
        self.point(w, source, group, names)
        self._left_over(w, names)
        if self.quads:
            w("int64_t *to = patch;")
            with self.each_run(w, names):
                expand(w, self.dtype, "to", names, 4 * self.quads, apart=self.apart)
                if self.window.rows.kernel * self.window.runs > 1:
                    _move_on(w, len(names) * self.quads, ("to",))

    def point(self, w: Writer, source: str, group: str, names: tuple[str, ...]) -> None:
        """Declares pointers to the first inputs of these positions."""
        window, kind = self.window, C_TYPES[self.dtype]
        start = product("x", window.step)
        if self.banded:
            start = f"band + {start}"
        else:
            start = f"{source} + {total('0' if window.flat else product('y', window.rows.stride * window.line), start)}"
        w(f"const {kind} *a = {start}{f' + {group}' if group else ''};")
        if len(names) > 1:
            w(f"const {kind} *b = a + {product('next - x', window.step)};")
        w.bill(6)
        if self.rows_at_once == 2:
            wrapped = self.row_step * window.rows.stride - window.columns.places * window.step
            for name, place in (("a", "x"), ("b", "next")):
                with w.block(f"if ({place} >= {window.columns.places})"):
                    w(f"{name} += {wrapped};")
            w.bill(5)

    @property
    def row_step(self) -> int:
        return self.window.padded_line if self.banded else self.window.rows.dilation * self.window.line

    @property
    def run_step(self) -> int:
        return self.window.columns.dilation * self.window.channels

    @contextmanager
    def each_run(self, w: Writer, names: tuple[str, ...], moved: int = 0) -> Iterator[None]:
        """The loops over runs of inputs, to which the pointers of these names move; what is done with a run has `moved`
        them already."""
        rows, runs = self.window.rows.kernel, self.window.runs
        with repeated(w, "ky", rows):
            with repeated(w, "kx", runs):
                yield
                if runs > 1:
                    _move_on(w, self.run_step - moved, names)
            if rows > 1:
                _move_on(w, self.row_step - (self.run_step * runs if runs > 1 else moved), names)

    def _left_over(self, w: Writer, names: tuple[str, ...]) -> None:
        """The inputs taken one by one, behind the others."""
        offsets = [ky * self.row_step + kx * self.run_step + i for ky, kx, i in self.left_over()]
        order = INPUT_ORDER[self.dtype]
        for at in range(0, len(offsets), 4):
            four = offsets[at : at + 4]
            pairs = [[four[i] if i < len(four) else None for i in half] for half in (order[:2], order[2:])]
            words = [_pair(w, name, pair) for pair in pairs for name in names]
            for index in range(0, len(words), 2):
                place = (len(names) * (self.whole + at) // 2 + index) // 2
                w(w.use(STORE_TWO, f"patch[{place}]", DSP.call(w, "two", *words[index : index + 2])))


def _move_on(w: Writer, by: int, names: tuple[str, ...]) -> None:
    for name in names:
        w(f"{name} += {by};")
    w.bill(len(names))


def _pair(w: Writer, name: str, offsets: list[int | None]) -> str:
    """Two single inputs as one word; the first needs only its lower 16 bits."""
    first, second = (None if offset is None else f"{name}[{offset}]" for offset in offsets)
    if first is None:
        return "0"
    w.bill(3 if second else 2)
    return DSP.call(w, "p_low_halves", first, second or "0")
