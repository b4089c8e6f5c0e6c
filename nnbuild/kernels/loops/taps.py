"""Depthwise convolution for any lanes of one channel: all channels of one position, tap by tap for each channel."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.overlaps import rows
from nnbuild.kernels.window_loops import column_taps, each_position, each_row, product, row_taps, total


@dataclass(frozen=True, eq=False)
class Taps(WindowNest[Lanes]):
    def demand(self) -> Demand:
        packed = {"kernel": self.site.constant("kernel").reshape(-1), **self.lanes.channels}
        return Demand(self.window.rows.places, packed=packed, overlaps=rows(self.site, self.window.rows), rows=True)

    def emit(self, w: Writer, names: Names) -> None:
        columns, lanes = self.window.columns, self.lanes
        dot.declare_channels(w, lanes, names.packed)
        with each_row(w, self.window.rows), each_position(w, columns):
            place = f"({product('y', columns.places)} + x) * {self.window.filters}"
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
        start = f"{product('top + ' + product('ky', window.rows.dilation), columns.size)} + left"
        w(f"const {lanes.input_type} *row = {names.inputs[0]} + {product(start, window.channels)} + {source};")
        taps = total(product("ky", columns.kernel * window.filters), "c")
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {taps};")
        with column_taps(w, columns):
            lanes.inputs(w, "x0", f"row + {product('kx', columns.dilation * window.channels)}")
            lanes.weights(w, "w0", f"k + {product('kx', window.filters)}")
            lanes.multiply(w, "sum", "x0", "w0")
