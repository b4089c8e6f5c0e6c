"""A dense layer on several rows as dot products, for any lanes: a tile of rows shares every weight it loads."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.window_loops import product


@dataclass(frozen=True, eq=False)
class Rows(WindowNest[Lanes]):
    def demand(self) -> Demand:
        packed = dot.packed(self.site.constant("kernel"), self.lanes)
        return Demand(extent=self.window.rows.places, packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        window, lanes = self.window, self.lanes
        rows = window.rows.places
        pixels = min(lanes.pixels, rows)
        with w.block("for (int32_t row = begin; row < end;)"):
            w(f"const {lanes.weight_type} *k = {names.packed['kernel']};")
            dot.declare_channels(w, lanes, names.packed)
            w(f"const {lanes.input_type} *from = {names.inputs[0]} + {product('row', window.depth)};")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('row', window.filters)};")
            if pixels > 1:
                with w.block(f"if (end - row >= {pixels})"), w.trips(rows // pixels):
                    self._all_blocks(w, pixels)
                with w.block("else"), w.trips(rows % pixels):
                    self._all_blocks(w, 1)
            else:
                with w.trips(rows):
                    self._all_blocks(w, 1)

    def _all_blocks(self, w: Writer, pixels: int) -> None:
        for block, count in dot.divide(self.window.filters, self.lanes).classes():
            with w.loop("block", count):
                self._tile(w, block, pixels)
                dot.next_block(w, self.lanes, block)
                w(f"to += {block.channels};")
        w(f"row += {pixels};")

    def _tile(self, w: Writer, block: Block, pixels: int) -> None:
        depth, filters = self.window.depth, self.window.filters
        dot.start(w, self.lanes, pixels, block)
        with w.loop("i", depth):
            pointers = [f"from + {p * depth} + i" if p else "from + i" for p in range(pixels)]
            dot.multiply(w, self.lanes, block, pointers, "k")
            w(f"k += {block.vectors * self.lanes.lanes};")
        dot.store(w, self.lanes, block, [dot.offset("to", p * filters) for p in range(pixels)])
