"""Convolution in tiles of positions by channels, which copies only the tiles at an edge.

A tile that crosses the left or right edge of the input is computed from a padded copy in scratch, like any other tile.
So there is one way to compute a tile, and scratch is small. The loop over `ky` skips rows above and below the input;
where padding counts they are an edge too. All channels of a tile are computed before the next tile.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.window import Axis, Strip, Window, WindowNest, strips, window_of
from nnbuild.kernels.loops.window_loops import each_row, each_strip, repeated, row_taps
from nnbuild.kernels.parts import overlaps
from nnbuild.model.graph import Array

COPY = Row("{0} = {1};", 6)
REGISTERS = 14
"""Values of a tile that any core keeps in registers."""
FEW_REGISTERS = 10
"""Values of a tile of cores with few registers, and of those whose sums wait beside many pointers."""
MANY_REGISTERS = 27
"""Those of RISC-V's 31 registers that a tile may use."""
KEPT = 97
"""Measured cycles per block of channels for stack spills where positions are counted."""
UNROLLED = 2
"""Inputs per iteration of the inner loop, where their number divides."""


@dataclass(frozen=True, eq=False)
class EdgeTiles(WindowNest[Lanes]):
    """weights: given where the lanes want them in another form.
    blank: the value copied for padding. whole: sums include padding, so rows beyond the input are copied as well.
    """

    registers: int
    weights: Array | None = None
    blank: str = "0"
    whole: bool = False

    @cached_property
    def window(self) -> Window:
        """The rows of a dense layer are positions of one tap, several in a row."""
        window = window_of(self.site)
        return window.joined() if self.site.op.kind == "dense" else window

    @cached_property
    def strips(self) -> list[Strip]:
        """Tiles as long as registers allow for sums, weights and an input."""
        vectors = self.lanes.vectors
        return strips(self.window.columns.places, max(1, (self.registers - vectors - 2) // vectors))

    @property
    def row_edges(self) -> bool:
        """Whether rows above and below the input are copied."""
        return self.whole and not self.window.rows.always_inside

    def width(self, strip: Strip) -> int:
        """Input columns under a tile."""
        columns = self.window.columns
        return Axis(columns.size, strip.size, columns.kernel, columns.stride, columns.dilation).covered

    def demand(self) -> Demand:
        window, lanes = self.window, self.lanes
        kernel = self.site.constant("kernel") if self.weights is None else self.weights
        packed = dot.packed(kernel.reshape(-1, window.filters), lanes, window.groups)
        kind = self.site.inputs[0].dtype
        inside = window.columns.always_inside and not self.row_edges
        copied = 0 if inside else window.rows.kernel * max(map(self.width, self.strips)) * window.channels
        size = copied * np.dtype(kind).itemsize
        if self.site.op.kind == "dense":
            return Demand(window.rows.places, packed=packed, each=window.columns.places * window.filters)
        return Demand(window.rows.places, size, kind, packed, overlaps.rows(self.site, window.rows), rows=True)

    def emit(self, w: Writer, names: Names) -> None:
        with each_row(w, self.window.rows, counted=not self.whole):
            for strip in self.strips:
                with each_strip(w, strip) as x:
                    self._tile(w, names, strip, x)

    def _tile(self, w: Writer, names: Names, strip: Strip, x: str) -> None:
        """All channels of a tile. Its inputs begin at `first` in `from`; its rows of taps lie `line` apart."""
        window, columns, lanes = self.window, self.window.columns, self.lanes
        size, share = self.width(strip), self._edge_share(strip)
        line, start = str(window.rows.dilation * window.line), f"top * {columns.size} + left"
        w(f"const int32_t left = {columns.position(x)};")
        w(f"const {lanes.input_type} *from = {names.inputs[0]};")
        w(f"int32_t first = ({start}) * {window.channels};")
        if share:
            w(f"int32_t line = {line};")
            with w.block(f"if ({self._beyond(size)})"), w.trips(share):
                self._copy(w, names, size)
                w(f"from = {names.scratch};")
                w("first = 0;")
                w(f"line = {size * window.channels};")
            line = "line"
        place = f"(y * {columns.places} + {x})"
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {place} * {window.filters};")
        w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        with repeated(w, "group", window.groups):
            for block, count in dot.divide(window.share, lanes).classes():
                with repeated(w, "block", count, block=True):
                    self._block(w, block, strip, line)
            if window.groups > 1:
                w(f"first += {window.depth};")

    def _beyond(self, size: int) -> str:
        """The condition that a tile of `size` columns crosses an edge."""
        rows, columns = self.window.rows, self.window.columns
        sides = [] if columns.always_inside else [("left", columns.size - size)]
        sides += [("top", rows.size - rows.span)] * self.row_edges
        if any(last < 0 for _, last in sides):
            return "1"
        return " || ".join(f"{first} < 0 || {first} > {last}" for first, last in sides)

    def _edge_share(self, strip: Strip) -> float:
        """The share of these tiles that cross an edge."""
        rows, columns = self.window.rows, self.window.columns
        lefts = [place * columns.stride - columns.pad for place in range(strip.place, strip.stop, strip.size)]
        beside = sum(not 0 <= left <= columns.size - self.width(strip) for left in lefts) / strip.count
        above = 1 - len(rows.inside) / rows.places if self.whole else 0.0
        return beside + (1 - beside) * above

    def _copy(self, w: Writer, names: Names, size: int) -> None:
        """Copies the columns under a tile, padded, for every row of taps or every real one."""
        columns, rows, channels = self.window.columns, self.window.rows, self.window.channels
        w(f"const int32_t before = left < 0 ? -left * {channels} : 0;")
        end = f"{columns.size} - left < {size} ? ({columns.size} - left) * {channels} : {size * channels}"
        w(f"const int32_t real_end = {end};")
        with self._row_taps(w):
            w(f"const int32_t row = first + ky * {rows.dilation * self.window.line};")
            w(f"{self.lanes.input_type} *copy = {names.scratch} + ky * {size * channels};")
            last = "real_end"
            if self.row_edges:
                w(f"const int32_t line_at = top + ky * {rows.dilation};")
                w(f"const int32_t last = line_at >= 0 && line_at < {rows.size} ? real_end : 0;")
                last = "last"
            w("int32_t i = 0;")
            for stop, value, share in (
                (f"before && i < {last}", self.blank, 0.1),
                (last, f"{names.inputs[0]}[row + i]", 0.8),
                (str(size * channels), self.blank, 0.1),
            ):
                with w.block(f"for (; i < {stop}; ++i)"), w.trips(share * size * channels):
                    w(w.use(COPY, "copy[i]", value))

    def _row_taps(self, w: Writer) -> AbstractContextManager[None]:
        """The loop `ky` over rows of taps."""
        return row_taps(w, self.window.rows) if not self.whole else w.loop("ky", self.window.rows.kernel)

    def _block(self, w: Writer, block: Block, strip: Strip, line: str) -> None:
        lanes, window = self.lanes, self.window
        dot.start(w, lanes, strip.size, block)
        width = block.vectors * lanes.lanes
        with self._row_taps(w):
            w(f"const {lanes.input_type} *row = from + (first + ky * {line});")
            w(f"const {lanes.weight_type} *k = taps + ky * {window.run * window.runs * width};")
            with repeated(w, "kx", window.runs):
                self._along(w, block, strip)
                if not window.contiguous:
                    w(f"row += {window.columns.dilation * window.channels - window.depth};")
        dot.store(w, lanes, block, [f"to + {pixel * window.filters}" for pixel in range(strip.size)])
        w(f"taps += {window.taps * width};")
        dot.next_block(w, lanes, block)
        w(f"to += {block.channels};")

    def _along(self, w: Writer, block: Block, strip: Strip) -> None:
        """The inner loop over a run of inputs, at each position of the tile."""
        width = block.vectors * self.lanes.lanes
        at_once = UNROLLED if self.window.run % UNROLLED == 0 else 1
        with w.loop("i", self.window.run, step=at_once):
            for part in w.each(range(at_once)):
                pointers = [f"row + {at + part}" for at in self.window.positions(strip.size, 0)]
                dot.multiply(w, self.lanes, block, pointers, f"k + {part * width}")
            w(f"row += {at_once};")
            w(f"k += {at_once * width};")


@dataclass(frozen=True, eq=False)
class Positions(EdgeTiles):
    """For layers whose positions each read their own input only. Work items are positions, whole tiles first; so even a
    few rows divide among many cores."""

    @cached_property
    def window(self) -> Window:
        places = prod(window_of(self.site).outputs)
        return replace(window_of(self.site), rows=Axis(1, 1), columns=Axis(places, places))

    def demand(self) -> Demand:
        places = self.window.columns.places
        return replace(super().demand(), extent=places, overlaps=(), rows=False, each=self.window.filters)

    def emit(self, w: Writer, names: Names) -> None:
        places, size = self.window.columns.places, self.strips[0].size
        blocks = self.window.groups * dot.divide(self.window.share, self.lanes).number
        w("const int32_t y = 0;")
        w("const int32_t top = 0;")
        w("int32_t x = begin;")
        with w.block(f"for (; x + {size} <= end; x += {size})"), w.trips(places // size):
            w.bill(KEPT * blocks)
            self._tile(w, names, Strip(0, size), "x")
        with w.block("for (; x < end; ++x)"), w.trips(places % size):
            self._tile(w, names, Strip(0, 1), "x")
