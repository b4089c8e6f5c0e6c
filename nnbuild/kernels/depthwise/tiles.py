"""Depthwise convolution in tiles of positions by one vector of channels: every input under a tile is loaded once.

Each input is multiplied by all taps of a row that read it. The place of a tile is known at build time, so tiles at an
edge are printed without the taps outside; the loop over `ky` skips rows above and below. `Taps` is shorter: all
channels of one position, each tap by tap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.vector_epilogue import declare_outputs, operand_name
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import Strip, WindowNest, edged_strips
from nnbuild.kernels.loops.window_loops import column_taps, each_position, each_row, each_strip, repeated, row_taps
from nnbuild.kernels.parts import overlaps
from nnbuild.kernels.parts.overlaps import rows
from nnbuild.model.graph import Array
from nnbuild.ops.base import Pair

Met = Mapping[int, Sequence[Pair]]


@dataclass(frozen=True, eq=False)
class Sliding(WindowNest[Lanes]):
    """`positions` of a tile, whose sums and a row of weights fit in registers."""

    positions: int

    def demand(self) -> Demand:
        rows, lanes = self.window.rows, self.lanes
        constants = {name: self._by_vector(values) for name, values in lanes.channels.items()}
        in_place = overlaps.rows(self.site, rows) if lanes.lanes == 1 else ()
        each = prod(self.site.output_shape()[1:]) if lanes.lanes == 1 else 0
        return Demand(rows.places, packed={"kernel": self._kernel(), **constants}, overlaps=in_place, each=each)

    @property
    def multiplier(self) -> int:
        """Output channels of an input channel."""
        return self.window.filters // self.window.channels

    @property
    def together(self) -> int:
        """Input channels whose outputs fill a vector, or the one that needs several."""
        return max(1, self.lanes.lanes // self.multiplier)

    def _vectors(self, channels: int) -> list[int]:
        """The outputs in each vector of some input channels."""
        outputs, lanes = channels * self.multiplier, self.lanes.lanes
        return [min(lanes, outputs - first) for first in range(0, outputs, lanes)]

    def _by_vector(self, values: Array) -> Array:
        """Values of every output channel, along the last axis, vector by vector; zeros in lanes without one."""
        whole, rest = divmod(self.window.channels, self.together)
        sizes = self._vectors(self.together) * whole + self._vectors(rest)
        found = np.zeros((*values.shape[:-1], len(sizes), self.lanes.lanes), values.dtype)
        found[..., np.arange(self.lanes.lanes) < np.array(sizes)[:, None]] = values
        return found.reshape(*values.shape[:-1], -1)

    def _kernel(self) -> Array:
        """The weights of a vector of channels are contiguous, tap by tap."""
        taps = self._by_vector(self.site.constant("kernel").reshape(-1, self.window.filters))
        ordered: Array = taps.reshape(len(taps), -1, self.lanes.lanes).transpose(1, 0, 2)
        return ordered.reshape(-1)

    def emit(self, w: Writer, names: Names) -> None:
        rows, columns = self.window.rows, self.window.columns
        blind = not self._met(0, columns.places)  # the start of the window's rows does not matter
        with w.loop("y", "end", start="begin", trips=rows.places) if blind else each_row(w, rows):
            for strip in edged_strips(self.window.columns, self.positions):
                with each_strip(w, strip) as x:
                    self._channels(w, names, strip, x)

    def _met(self, place: int, size: int) -> Met:
        """The real columns under `size` windows; none where all their rows are padding."""
        return self.window.columns.taps_at(place, size) if self.window.rows.inside_share else {}

    def _channels(self, w: Writer, names: Names, strip: Strip, x: str) -> None:
        """All channels of a tile; `first` is its first real input column."""
        window, columns, lanes = self.window, self.window.columns, self.lanes
        met = self._met(strip.place, strip.size)
        if met:
            w(f"const int32_t left = {columns.position(x)} + {min(met)};")
            start = f"top * {columns.size} + left"
            w(f"int32_t first = ({start}) * {window.channels};")
        declare_outputs(w, lanes.output_type, names, f"(y * {columns.places} + {x}) * {window.filters}")
        others = [operand_name(operand) for operand in range(1, len(names.inputs))]
        if met:
            w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        whole, rest = divmod(window.channels, self.together)
        if whole:
            with w.loop("c", whole):
                full = self._vectors(self.together)
                with repeated(w, "m", full.count(full[0])):
                    self._next_vector(w, names, strip, full[0], others)
                if full[-1] < full[0]:
                    with w.block(""):
                        self._next_vector(w, names, strip, full[-1], others)
                if met:
                    w(f"first += {self.together};")
        for count in w.each(self._vectors(rest)):
            self._vector(w, names, strip, count)

    def _next_vector(self, w: Writer, names: Names, strip: Strip, count: int, others: Sequence[str]) -> None:
        """A vector, after which pointers advance."""
        self._vector(w, names, strip, count)
        if self._met(strip.place, strip.size):
            w(f"taps += {self.window.taps * self.lanes.lanes};")
        for name in ("to", *others):
            w(f"{name} += {count};")
        for name in self.lanes.channels:
            w(f"{name} += {self.lanes.lanes};")
        w.bill(3)

    def _vector(self, w: Writer, names: Names, strip: Strip, count: int) -> None:
        """The first `count` channels of a vector."""
        window, lanes = self.window, self.lanes
        met = self._met(strip.place, strip.size)
        for position in range(strip.size):
            lanes.start(w, f"sum{position}", "0")
        if met and lanes.unroll_rows:
            whole = window.rows.inside_share
            condition = "1" if whole == 1 else f"ky_end - ky_begin == {window.rows.kernel}"
            with w.block(f"if ({condition})"), w.trips(whole):
                for ky in w.each(range(window.rows.kernel)):
                    self._row(w, names, met, count, str(ky), strip)
            with w.block("else"), w.trips(1 - whole):
                for position in range(strip.size):
                    lanes.start_centred(w, f"sum{position}", "0")
                self._rows(w, names, met, count)
        elif met:
            self._rows(w, names, met, count)
        elif lanes.unroll_rows:
            for position in range(strip.size):
                lanes.start_centred(w, f"sum{position}", "0")
        lanes.declare_constants(w)
        for position in range(strip.size):
            lanes.store(w, f"sum{position}", f"to + {position * window.filters}", "0", count)

    def _rows(self, w: Writer, names: Names, met: Met, count: int) -> None:
        with row_taps(w, self.window.rows):
            self._row(w, names, met, count, "ky")

    def _row(self, w: Writer, names: Names, met: Met, count: int, ky: str, blank: Strip | None = None) -> None:
        """A row of taps. `met`: for every column under the tile, the positions and taps that read it.

        With a `blank` strip inputs keep their zero point, which stands for those outside, too.
        """
        window, lanes = self.window, self.lanes
        down = f"({ky}) * {window.rows.dilation * window.line}"
        w(f"const {lanes.input_type} *row = {names.inputs[0]} + (first + {down});")
        w(f"const {lanes.weight_type} *k = taps + ({ky}) * {window.columns.kernel * lanes.lanes};")
        w.bill(3)
        meetings = {pair for pairs in met.values() for pair in pairs}
        beyond: list[Pair] = []
        if blank and lanes.blank:
            everywhere = [(position, tap) for position in range(blank.size) for tap in range(window.columns.kernel)]
            beyond = [pair for pair in everywhere if pair not in meetings]
        for tap in sorted({tap for _, tap in [*meetings, *beyond]}):
            lanes.weights(w, f"w{tap}", f"k + {tap * lanes.lanes}")
        for column, pairs in met.items():
            at = f"row + {(column - min(met)) * window.channels}"
            (lanes.raw_inputs if blank else lanes.lane_inputs)(w, f"x{column}", at, count)
            for position, tap in pairs:
                lanes.multiply(w, f"sum{position}", f"x{column}", f"w{tap}")
        for position, tap in beyond:
            lanes.multiply(w, f"sum{position}", str(lanes.blank), f"w{tap}")


@dataclass(frozen=True, eq=False)
class Taps(WindowNest[Lanes]):
    def demand(self) -> Demand:
        packed = {"kernel": self.site.constant("kernel").reshape(-1), **self.lanes.channels}
        return Demand(self.window.rows.places, packed=packed, overlaps=rows(self.site, self.window.rows), rows=True)

    def emit(self, w: Writer, names: Names) -> None:
        columns, lanes = self.window.columns, self.lanes
        dot.declare_channels(w, lanes, names.packed)
        with each_row(w, self.window.rows), each_position(w, columns):
            place = f"(y * {columns.places} + x) * {self.window.filters}"
            w(f"{lanes.output_type} *to = {names.outputs[0]} + {place};")
            with w.loop("c", self.window.filters):
                lanes.start(w, "sum", "c")
                with row_taps(w, self.window.rows):
                    self._row(w, names)
                lanes.store(w, "sum", "to + c", "c", 1)

    def _row(self, w: Writer, names: Names) -> None:
        window, columns, lanes = self.window, self.window.columns, self.lanes
        multiplier = window.filters // window.channels
        source = "c" if multiplier == 1 else f"c / {multiplier}"
        start = f"(top + ky * {window.rows.dilation}) * {columns.size} + left"
        w(f"const {lanes.input_type} *row = {names.inputs[0]} + ({start}) * {window.channels} + {source};")
        taps = f"ky * {columns.kernel * window.filters} + c"
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {taps};")
        with column_taps(w, columns):
            lanes.inputs(w, "x0", f"row + kx * {columns.dilation * window.channels}")
            lanes.weights(w, "w0", f"k + kx * {window.filters}")
            lanes.multiply(w, "sum", "x0", "w0")
