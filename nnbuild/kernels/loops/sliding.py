"""Depthwise convolution channel by channel of a tile of positions, where every input under the tile is loaded once.

For lanes of one channel: floats on Cortex-M4F and M7, and integers on cores that multiply one number at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels import overlaps
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.window import Strip, Window, edged_strips, window_of
from nnbuild.kernels.window_loops import each_row, each_strip, product, repeated, row_taps
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Sliding:
    """`positions` of a tile: their sums and a row of weights are in registers at once.

    A tile at an edge is printed without the taps that are beyond.
    """

    site: Site
    lanes: Lanes
    positions: int

    @cached_property
    def window(self) -> Window:
        return window_of(self.site)

    def demand(self) -> Demand:
        """The weights of a channel follow each other."""
        kernel = self.site.constant("kernel").reshape(-1, self.window.filters).T.reshape(-1)
        rows = self.window.rows
        packed = {"kernel": kernel, **self.lanes.channels}
        return Demand(rows.places, packed=packed, overlaps=overlaps.rows(self.site, rows))

    def emit(self, w: Writer, names: Names) -> None:
        with each_row(w, self.window.rows):
            for strip in edged_strips(self.window.columns, self.positions):
                with each_strip(w, strip) as x:
                    self._channels(w, names, strip, x)

    def _channels(self, w: Writer, names: Names, strip: Strip, x: str) -> None:
        """All channels of a tile, whose first real column is `first` in the input."""
        window, columns, lanes = self.window, self.window.columns, self.lanes
        real = min(columns.taps_at(strip.place, strip.size), default=0)
        w(f"const int32_t left = {columns.position(x)}{f' + {real}' if real else ''};")
        start = f"{product('top', columns.size)} + left"
        w(f"int32_t first = {product(start, window.channels)};")
        place = f"({product('y', columns.places)} + {x}) * {window.filters}"
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {place};")
        w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        with w.loop("c", window.channels):
            with repeated(w, "m", window.filters // window.channels):
                self._channel(w, names, strip)
            w("first += 1;")

    def _channel(self, w: Writer, names: Names, strip: Strip) -> None:
        window, lanes, kernel = self.window, self.lanes, self.window.columns.kernel
        met = window.columns.taps_at(strip.place, strip.size)
        for position in range(strip.size):
            lanes.start(w, f"sum{position}", "0")
        if met:
            with row_taps(w, window.rows):
                down = product("ky", window.rows.dilation * window.line)
                w(f"const {lanes.input_type} *row = {names.inputs[0]} + (first + {down});")
                w(f"const {lanes.weight_type} *k = taps + {product('ky', kernel)};")
                w.bill(3)
                for tap in sorted({tap for pairs in met.values() for _, tap in pairs}):
                    lanes.weights(w, f"w{tap}", dot.offset("k", tap))
                for column, pairs in met.items():
                    at = (column - min(met)) * window.channels
                    lanes.inputs(w, f"x{column}", dot.offset("row", at))
                    for position, tap in pairs:
                        lanes.multiply(w, f"sum{position}", f"x{column}", f"w{tap}")
        for position in range(strip.size):
            lanes.store(w, f"sum{position}", dot.offset("to", position * window.filters), "0", 1)
        w(f"taps += {window.rows.kernel * kernel};")
        w("to += 1;")
        for name in lanes.channels:
            w(f"{name} += 1;")
        w.bill(3)
