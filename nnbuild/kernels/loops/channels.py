"""Depthwise convolution in vectors of channels.

A tile is a strip of neighbouring positions of one vector of channels. Under one row of taps every input is loaded
once and multiplied by all taps that fall on it. Where a strip lies is known while printing, so taps beside the input
are simply left out; rows above and below are left out of the loop over `ky`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.vector_tail import beside_name
from nnbuild.kernels.window import Strip, Window, edged_strips, window_of
from nnbuild.kernels.window_loops import each_row, each_strip, moved, product, row_taps, total
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

LONGEST = 8
"""Positions of a strip, where there are registers for them."""


@dataclass(frozen=True, eq=False)
class Channels:
    site: Site
    lanes: VectorLanes

    @cached_property
    def window(self) -> Window:
        return window_of(self.site)

    @cached_property
    def strips(self) -> list[Strip]:
        registers = self.lanes.floats.registers - self.lanes.floats.temporaries
        columns = self.window.columns
        return edged_strips(columns, max(1, min(LONGEST, registers - columns.kernel - 1)))

    def demand(self) -> Demand:
        lanes, kernel = self.lanes, self.site.constant("kernel")
        channels = {name: dot.pack_channels(values, lanes) for name, values in lanes.channels.items()}
        return Demand(self.window.rows.places, packed={"kernel": _packed(kernel, lanes.lanes), **channels})

    def emit(self, w: Writer, names: Names) -> None:
        channels, step = self.window.channels, self.lanes.lanes
        whole = channels // step * step
        dot.declare_channels(w, self.lanes, names.packed)
        with each_row(w, self.window.rows):
            if whole:
                with w.loop("c", whole, step=step):
                    self._row(w, names, "c", step)
            if whole < channels:
                with w.block(""):
                    self._row(w, names, str(whole), channels - whole)

    def _row(self, w: Writer, names: Names, channel: str, count: int) -> None:
        """One row of outputs of the `count` channels from `channel` on."""
        for strip in self.strips:
            with each_strip(w, strip) as x:
                self._strip(w, names, strip, x, channel, count)

    def _strip(self, w: Writer, names: Names, strip: Strip, x: str, channel: str, count: int) -> None:
        window, rows, columns, lanes = self.window, self.window.rows, self.window.columns, self.lanes
        for position in range(strip.size):
            lanes.start(w, f"sum{position}", channel)
        with row_taps(w, rows):
            line = product(total("top", product("ky", rows.dilation)), columns.size)
            first = min(columns.taps_at(strip.place, strip.size))
            place = product(moved(f"{line} + {product(x, columns.stride)}", first - columns.pad), window.channels)
            taps = total(product(channel, rows.kernel * columns.kernel), product("ky", columns.kernel * lanes.lanes))
            w(f"const float *row = {names.inputs[0]} + {total(place, channel)};")
            w(f"const float *k = {names.packed['kernel']} + {taps};")
            self._taps(w, strip, count)
        place = total(product(total(product("y", columns.places), x), window.channels), channel)
        w(f"float *to = {names.outputs[0]} + {place};")
        for operand in range(1, len(names.inputs)):
            w(f"const float *{beside_name(operand)} = {names.inputs[operand]} + {place};")
        for position in range(strip.size):
            lanes.store(w, f"sum{position}", dot.offset("to", position * window.channels), channel, count)

    def _taps(self, w: Writer, strip: Strip, count: int) -> None:
        """One row of taps."""
        floats, lanes = self.lanes.floats, self.lanes
        met = self.window.columns.taps_at(strip.place, strip.size)
        for tap in sorted({tap for pairs in met.values() for _, tap in pairs}):
            lanes.weights(w, f"w{tap}", dot.offset("k", tap * lanes.lanes))
        for column, pairs in met.items():
            at = dot.offset("row", (column - min(met)) * self.window.channels)
            floats.declare(w, f"x{column}", floats.load(w, at, count))
            for position, tap in pairs:
                lanes.multiply(w, f"sum{position}", f"x{column}", f"w{tap}")


def _packed(kernel: Array, lanes: int) -> Array:
    """[kh, kw, channels, 1] -> vectors of channels, of each all taps."""
    taps = kernel.reshape(-1, kernel.shape[2])
    whole = np.pad(taps, ((0, 0), (0, -taps.shape[1] % lanes)))
    ordered: Array = whole.reshape(len(taps), -1, lanes).transpose(1, 0, 2)
    return ordered.reshape(-1)
