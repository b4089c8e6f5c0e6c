"""Convolutions on cores that multiply single words: one multiplication computes two products.

A word holds the inputs of two positions, the second times 65,536. Multiplied by a weight and summed, its lower half is
the first position's sum as long as that fits 16 bits. So products are summed by groups of few taps, as many as the
weights allow. A group's sum S starts at 32,768, so that its upper half is exact, too; with T the sum of all S and H
that of their upper halves, the second position's sum is H, and the first one's is T - 65,536 H.

Four or six positions are computed together, two channels at a time; more positions load weights less often. Their
inputs are laid out once, in the order of the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.kernels.contract import Demand, Kernel, Names, only_int8, variant
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.lanes.byte_lanes import scaling_of
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import Axis, Weighted, WindowNest, window_of
from nnbuild.kernels.paired_products.two_positions_tile import CHANNELS, HALF, Tile
from nnbuild.kernels.parts import overlaps
from nnbuild.model.graph import Array
from nnbuild.numeric.groups import grouped
from nnbuild.numeric.rounding import Ints, int32s
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

BOUND = 255
"""The bound of a group's weight magnitudes: with inputs of -128 the sum is more than -32,768."""
COPY = Row("{0} = {1};", 3)
CALL = 14
FEW = 2
"""Pairs of positions for a remainder of at most so many."""


@lru_cache(maxsize=256)
def groups_of(site: Site[Weighted]) -> tuple[Ints, int]:
    return grouped(sums_of(site).weights, BOUND)


@dataclass(frozen=True, eq=False)
class TwoPositions(WindowNest[Scaling]):
    """`pairs` of positions are computed together."""

    pairs: int

    @property
    def positions(self) -> int:
        return 2 * self.pairs

    @cached_property
    def order(self) -> Ints:
        """The order of taps."""
        return groups_of(self.site)[0]

    @property
    def size(self) -> int:
        """Taps of a group."""
        return groups_of(self.site)[1]

    @property
    def taps(self) -> int:
        return self.window.taps

    def tile(self, pairs: int) -> Tile:
        left = self.lanes.left
        common = int(left[0]) if (left == left[0]).all() else None
        return Tile(pairs, self.taps, self.size, self.window.filters, self.lanes, common)

    @property
    def along(self) -> Axis:
        """Positions computed in sequence: all where each has its own input."""
        window = self.window
        places = window.rows.places * window.columns.places
        return Axis(places, places) if window.flat else window.columns

    @property
    def rows_at_once(self) -> int:
        """Output rows whose positions are computed in sequence, so that few are left over."""
        places = self.window.columns.places
        few = [rows for rows in (1, 2, 4) if rows <= self.window.rows.places] or [1]
        return 1 if self.window.flat else min(few, key=lambda rows: (-(-rows * places // self.positions) / rows, rows))

    @property
    def band_rows(self) -> int:
        return self.window.rows.span + (self.rows_at_once - 1) * self.window.rows.stride

    @property
    def band(self) -> int:
        """Bytes of a padded copy of the rows under some rows of windows."""
        return 0 if self.window.inside else self.band_rows * self.window.padded_line

    @property
    def line(self) -> int:
        """Bytes from one row of inputs, or of their copy, to the next."""
        return self.window.padded_line if self.band else self.window.line

    @property
    def offsets(self) -> Array:
        """The offsets of a window's inputs from its first, in the order of the groups."""
        window = self.window
        rows = np.arange(window.rows.kernel)[:, None, None] * window.rows.dilation * self.line
        columns = np.arange(window.columns.kernel)[None, :, None] * window.columns.dilation * window.channels
        flat = (rows + columns + np.arange(window.depth)[None, None, :]).reshape(-1)
        return flat[self.order].astype(np.int32)

    def demand(self) -> Demand:
        window = self.window
        if self.band:
            overlap = overlaps.rows(self.site, window.rows, ahead=window.rows.stride)
        elif window.flat:
            overlap = overlaps.tiles(self.site, Axis(1, 1), self.along, self.positions)
        else:
            overlap = overlaps.rows(self.site, window.rows)
        return Demand(
            extent=self.along.places if window.flat else window.rows.places,
            scratch=4 * self.pairs * self.taps + self.band,
            scratch_type="int32",
            packed={"kernel": self._kernel(), "offsets": self.offsets, "scaling": self._scaling()},
            overlaps=overlap,
            rows=True,
            grain=self.positions if window.flat else self.rows_at_once,
        )

    def _kernel(self) -> Array:
        """[block][tap][channel]."""
        weights = sums_of(self.site).weights
        blocks = weights[self.order].reshape(self.taps, -1, CHANNELS).transpose(1, 0, 2)
        return blocks.reshape(-1).astype(np.int8)

    def _scaling(self) -> Array:
        scaling = self.lanes
        start = sums_of(self.site).start - scaling.centre
        first = start * (1 + (1 << 16)) - HALF * -(-self.taps // self.size)
        left = [scaling.left] if self.tile(self.pairs).left is None else []
        columns = np.stack([first, start, *scaling.columns.values(), *left], axis=1)
        return int32s(columns.reshape(-1))

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        w(f"int32_t *const words = {names.scratch};")
        if window.flat:
            tiles = -(-self.along.places // self.positions)
            with w.loop("x", "end", start="begin", step=self.positions, trips=tiles):
                self._together(w, names, names.inputs[0], "end", "0", tiles)
            return
        if self.band:
            w(f"int8_t *const band = (int8_t *)({names.scratch} + {self.pairs * self.taps});")
            with w.loop("i", self.band):
                w(w.use(COPY, "band[i]", str(quant_of(self.site.inputs[0]).zero_point)))
        places, at_once = window.columns.places, self.rows_at_once
        with w.loop("y", "end", start="begin", step=at_once, trips=window.rows.places / at_once):
            if self.band:
                self._fill(w, names.inputs[0])
                source = "band"
            else:
                source = f"{names.inputs[0]} + y * {window.rows.stride * window.line}"
            last = str(places)
            if at_once > 1:
                w(f"const int32_t last = y + {at_once} <= end ? {at_once * places} : (end - y) * {places};")
                last = "last"
            tiles = -(-at_once * places // self.positions)
            with w.loop("x", last, step=self.positions, trips=tiles):
                self._together(w, names, source, last, f"y * {places * window.filters}", tiles)

    def _fill(self, w: Writer, source: str) -> None:
        """Copies the rows under a row of windows, padded."""
        window, rows, columns = self.window, self.window.rows, self.window.columns
        zero, inside = str(quant_of(self.site.inputs[0]).zero_point), rows.inside_share
        with w.loop("ky", self.band_rows):
            w(f"const int32_t row = {rows.position('y')} + ky;")
            line = f"ky * {window.padded_line} + {columns.pad * window.channels}"
            w(f"int8_t *line = band + {line};")
            w.bill(8)
            with w.block(f"if (row >= 0 && row < {rows.size})"), w.trips(inside):
                w(f"const int8_t *from = {source} + row * {window.line};")
                with w.loop("i", columns.taken * window.channels):
                    w(w.use(COPY, "line[i]", "from[i]"))
            with w.block("else"), w.trips(1 - inside), w.loop("i", columns.taken * window.channels):
                w(w.use(COPY, "line[i]", zero))

    def _together(self, w: Writer, names: Names, source: str, last: str, row: str, tiles: int) -> None:
        """All channels of the positions from x on; positions behind the last one repeat it."""
        window, count = self.window, self.positions
        step, froms = window.step, [f"from{at}" for at in range(count)]
        w(f"const int8_t *from0 = {self._window(source, 'x')};")
        w(f"int8_t *to[{count}];")
        w(f"to[0] = {names.outputs[0]} + {row} + x * {window.filters};")
        whole = last.isdigit() and int(last) % count == 0
        for at in range(1, count):
            there = "1" if whole else f"(x + {at} < {last})"
            before = f"from{at - 1} + ({there}) * {step}"
            if self.rows_at_once > 1:
                w(f"const int32_t x{at} = x + {at} < {last} ? x + {at} : {f'x{at - 1}' if at > 1 else 'x'};")
                before = self._window(source, f"x{at}")
                w.bill(10)
            w(f"const int8_t *from{at} = {before};")
            w(f"to[{at}] = to[{at - 1}] + ({there}) * {window.filters};")
            w.bill(3 if whole else 7)
        rest = (self.along.places if window.flat else self.rows_at_once * window.columns.places) % count
        if not 0 < rest <= 2 * FEW < count:
            self._products(w, names, self.tile(self.pairs), froms)
            return
        share = 1 / tiles
        with w.block(f"if (x + {2 * FEW} < {last})"), w.trips(1 - share):
            self._products(w, names, self.tile(self.pairs), froms)
        with w.block("else"), w.trips(share):
            self._products(w, names, self.tile(FEW), froms)

    def _products(self, w: Writer, names: Names, tile: Tile, froms: list[str]) -> None:
        packed, turns = names.packed, str(self.taps // tile.at_once)
        w.bill(2 * CALL + 8)
        w(f"{w.call(tile.laying(w), 'words', packed['offsets'], *froms[: tile.positions], turns)};")
        channels = str(self.window.filters)
        w(f"{w.call(tile.routine(w), 'words', packed['kernel'], packed['scaling'], 'to', channels)};")

    def _window(self, source: str, x: str) -> str:
        """The first input of a position."""
        if self.rows_at_once == 1:
            return f"{source} + ({x}) * {self.window.step}"
        places, down = self.window.columns.places, self.window.rows.stride * self.line
        return f"{source} + {x} / {places} * {down} + {x} % {places} * {self.window.step}"


def _refused(site: Site[Weighted]) -> str | None:
    if reason := only_int8(site):
        return reason
    window = window_of(site)
    if window.groups > 1:
        return "it computes no groups"
    if window.filters % CHANNELS:
        return "its number of channels is odd"
    weights = site.constants["kernel"]
    if weights.data.dtype != np.int8 or quant_of(weights).zero_point:
        return "its weights are not int8 with zero point 0"
    return None if window.pool == (1, 1) else "it fuses no pool"


def _variant(name: str, pairs: int) -> Kernel[Weighted]:
    return variant(name, frozenset({"rv32im"}), _refused, lambda site: TwoPositions(site, scaling_of(site), pairs))


VARIANTS = (_variant("joined", 2), _variant("joined_six", 3))
