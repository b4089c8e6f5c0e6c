"""Bytes whose channels are linear functions of the input, by a factor, a start and a shift; exact, see `step_line`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    K,
    Kernel,
    Names,
    OnEach,
    Overlap,
    accepted,
    kernel_of,
    on_each,
    reason_of,
)
from nnbuild.kernels.loops.strided import Loops, each_run
from nnbuild.kernels.parts.channel_tables import pointers, rows_of, sizes_of
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8
from nnbuild.numeric.step_line import StepLines
from nnbuild.ops.site import Site

DROPPED = 16
"""Bits that the multiplication of a word by half a word drops."""
QUAD = 4
ROWS = 8
"""Rows per iteration."""
LOAD = Row("const int32_t {0} = {1};", 1)
TURNED = Row("({0} < {1} ? {2} - {3} : {2})", 3)


def kernels(
    lines: Callable[[Site[K], int], StepLines | str], walks: Callable[[Site[K]], Loops]
) -> tuple[Kernel[K] | OnEach[K], ...]:
    """The kernels of an operation whose channels are linear.

    lines: the channels' functions for products that drop a number of bits, or why there are none.
    walks: loops whose first walk is that of output and input, and whose last is that of the channels' constants.
    """
    return (
        kernel_of("lines", PORTABLE, _Plain(lines, walks)),
        kernel_of("columns", frozenset({"armv7em_dsp"}), _Columns(lines, walks)),
        on_each("integer", lambda vectors: _Vectors(lines, walks, vectors)),
    )


def _packed(found: StepLines, lanes: int = 1) -> dict[str, Array]:
    """The constants of each channel, padded with zeros to full vectors; kinks only where there are some."""
    columns = {"factor": found.factors, "start": found.starts}
    if found.kinks.any():
        columns |= {"turn": found.turns, "kink": found.kinks}
    more = -len(found.factors) % lanes
    return {name: np.pad(values, (0, more)).astype(np.int32) for name, values in columns.items()}


def _start(w: Writer, names: Names, place: str) -> str:
    """The start that is added to the product of the variable x."""
    start, turn, kink = (f"{names.packed[role]}[{place}]" if role in names.packed else "" for role in TURNING)
    return w.use(TURNED, "x", turn, start, kink) if turn else start


TURNING = ("start", "turn", "kink")


@dataclass(frozen=True)
class _Plain:
    lines: Callable[[Site[Any], int], StepLines | str]
    walks: Callable[[Site[Any]], Loops]

    drop: ClassVar[int] = 0
    """Bits that the products drop."""

    def accepts(self, site: Site) -> str | None:
        return reason_of(self.lines(site, self.drop))

    def found(self, site: Site) -> StepLines:
        return accepted(self.lines(site, self.drop))

    def demand(self, site: Site) -> Demand:
        return Demand(extent=self.walks(site).extent, packed=_packed(self.found(site)), overlaps=IN_PLACE)

    def emit(self, w: Writer, site: Site, names: Names) -> None:
        found = self.found(site)

        def element(at: list[str]) -> None:
            w(w.use(c99.LOAD_AS, "const int32_t", "x", f"{names.inputs[0]}[{at[0]}]"))
            w.bill(c99.MULTIPLY_ADD.cycles + 3)
            line = f"x * {names.packed['factor']}[{at[1]}] + {_start(w, names, at[1])}"
            w(w.use(c99.LOAD_AS, "int32_t", "value", f"({line}) >> {found.shift}"))
            c99.bound(w, found.bounds, "value")
            w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int8_t)value"))

        self.walks(site).nest(w, element)


class _Rows(_Plain):
    """A work item is a row."""

    def accepts(self, site: Site) -> str | None:
        reason = super().accepts(site)
        return reason or (None if rows_of(self.walks(site)) else "its channels are not contiguous")

    def sizes(self, site: Site) -> tuple[int, int]:
        return sizes_of(self.walks(site))


class _Columns(_Rows):
    """Four channels at a time, for all rows, with their constants in registers."""

    drop = DROPPED

    def demand(self, site: Site) -> Demand:
        rows, channels = self.sizes(site)
        packed = _packed(self.found(site))
        if "kink" in packed and channels >= QUAD:
            quads = packed["kink"][: channels // QUAD * QUAD].reshape(-1, QUAD)
            packed["turning"] = (quads != 0).any(axis=1).astype(np.int8)
        same = Overlap(step=rows * channels)
        return Demand(extent=rows, packed=packed, overlaps=(same,))

    def emit(self, w: Writer, site: Site, names: Names) -> None:
        rows, channels = self.sizes(site)
        whole = channels // QUAD * QUAD
        found = self.found(site)
        if whole:
            with w.loop("c", whole, step=QUAD):
                self._quads(w, names, found, rows, channels)
        if whole < channels:
            with w.block(f"for (int32_t c = {whole}; c < {channels}; ++c)"), w.trips(channels - whole):
                self._channel(w, names, found, rows, channels)

    def _quads(self, w: Writer, names: Names, found: StepLines, rows: int, channels: int) -> None:
        if "turning" in names.packed:
            with w.block(f"if ({names.packed['turning']}[c / {QUAD}] != 0)"):
                with w.block(f"for (int32_t last = c + {QUAD}; c < last; ++c)"), w.trips(0):
                    self._channel(w, names, found, rows, channels)
                w(f"c -= {QUAD};")
                w("continue;")
        pointers(w, names, channels)
        for role, name in (("factor", "f"), ("start", "s")):
            for k in range(QUAD):
                w(w.use(LOAD, f"{name}{k}", f"{names.packed[role]}[c + {k}]"))
        with w.block(f"for (; left >= {ROWS}; left -= {ROWS})"), w.trips(rows // ROWS):
            w.bill(3)
            for row in range(ROWS):
                self._quad(w, found, row * channels)
            for pointer in ("from", "to"):
                w(f"{pointer} += {ROWS * channels};")
        with w.block("for (; left > 0; --left)"), w.trips(rows % ROWS):
            w.bill(5)
            self._quad(w, found, 0)
            for pointer in ("from", "to"):
                w(f"{pointer} += {channels};")

    def _quad(self, w: Writer, found: StepLines, at: int) -> None:
        with w.block(""):
            w(w.use(LOAD, "word", DSP.call(w, "load_bytes", f"from + {at}", of=(QUAD,))))
            w(w.use(LOAD, "even", DSP.call(w, "p_even_bytes", "word")))
            w(w.use(LOAD, "odd", DSP.call(w, "p_odd_bytes", "word")))
            w.bill(-3)
            for k in range(QUAD):
                half = ("p_wide_low", "p_wide_high")[k // 2]
                value = DSP.call(w, half, f"f{k}", ("even", "odd")[k % 2], f"s{k}")
                _finish(w, found, value, f"to[{at + k}]")

    def _channel(self, w: Writer, names: Names, found: StepLines, rows: int, channels: int) -> None:
        pointers(w, names, channels)
        with w.block("for (; left > 0; --left)"), w.trips(rows):
            w.bill(3)
            w(w.use(LOAD, "x", "*from"))
            start = _start(w, names, "c")
            _finish(w, found, DSP.call(w, "p_wide_low", f"{names.packed['factor']}[c]", "x", start), "*to")
            for pointer in ("from", "to"):
                w.bill(1)
                w(f"{pointer} += {channels};")


def _finish(w: Writer, found: StepLines, value: str, target: str) -> None:
    shifted = DSP.call(w, "saturate", value, of=(8, found.shift))
    if found.bounds == INT8:
        w(w.use(c99.STORE_BYTE, target, shifted))
        return
    with w.block(""):
        w(f"int32_t value = {shifted};")
        for limit, usual, row in zip(found.bounds, INT8, (c99.AT_LEAST, c99.AT_MOST), strict=True):
            if limit != usual:
                w(w.use(row, "value", str(limit)))
        w(w.use(c99.STORE_BYTE, target, "value"))


@dataclass(frozen=True)
class _Vectors(_Rows):
    """One channel a lane."""

    v: Vectors

    def demand(self, site: Site) -> Demand:
        packed = _packed(self.found(site), self.v.lanes)
        return Demand(extent=self.sizes(site)[0], packed=packed, overlaps=IN_PLACE)

    def emit(self, w: Writer, site: Site, names: Names) -> None:
        sizes, found, v = self.sizes(site), self.found(site), self.v
        with each_run(w, site, names, *sizes):
            for c, real in in_vectors(w, v.lanes, sizes[1]):
                of = {role: v.call(w, "load", f"{name} + {c}") for role, name in names.packed.items()}
                v.let(w, "sums", "x", v.call(w, "widen", f"from + {c}", of=(real,)))
                start = of["start"]
                if "turn" in of:
                    below = v.call(w, "shift_right", v.call(w, "sub", "x", of["turn"]), of=(31,))
                    start = v.call(w, "sub", start, v.call(w, "and", of["kink"], below))
                line = v.call(w, "add", v.call(w, "mul", "x", of["factor"]), start)
                v.let(w, "sums", "value", v.call(w, "shift_right", line, of=(found.shift,)))
                w(f"{v.call(w, 'store_bytes', f'to + {c}', 'value', of=(*found.bounds, real))};")
