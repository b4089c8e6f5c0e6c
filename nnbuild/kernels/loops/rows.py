"""A dense layer as dot products, for any ISA's lanes.

With one row of inputs the work divides by blocks of outputs; with several, by rows, and a tile of rows shares
every weight it loads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.vector_tail import beside_name
from nnbuild.kernels.window import Window
from nnbuild.kernels.window_loops import product


def each_block(
    w: Writer, names: Names, lanes: Lanes, window: Window, source: str, body: Callable[[Block], None]
) -> None:
    """The body for every block of outputs of one row, with pointers to its weights, inputs and outputs."""
    blocks = dot.divide(window.filters, lanes)
    width, steps = blocks.full.vectors * lanes.lanes, -(-window.depth // lanes.depth) * lanes.depth
    with w.loop("block", "end", start="begin", trips=blocks.pieces):
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {product('block', steps * width)};")
        dot.declare_channels(w, lanes, names.packed, f" + {product('block', width)}")
        if source:
            w(f"const {lanes.input_type} *from = {source};")
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('block', width)};")
        for operand in range(1, len(names.inputs)):
            w(f"const float *{beside_name(operand)} = {names.inputs[operand]} + {product('block', width)};")
        if blocks.tail is None or blocks.count == 0:
            body(blocks.tail or blocks.full)
            return
        with w.block(f"if (block < {blocks.count})"), w.trips(blocks.count / blocks.pieces):
            body(blocks.full)
        with w.block("else"), w.trips(1 / blocks.pieces):
            body(blocks.tail)


@dataclass(frozen=True, eq=False)
class Rows(WindowNest[Lanes]):
    def demand(self) -> Demand:
        rows, blocks = self.window.rows.places, dot.divide(self.window.filters, self.lanes)
        packed = dot.packed(self.site.constant("kernel"), self.lanes)
        return Demand(extent=rows if rows > 1 else blocks.pieces, packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        if self.window.rows.places > 1:
            self._by_rows(w, names)
        else:
            each_block(w, names, self.lanes, self.window, names.inputs[0], lambda block: self._tile(w, block, 1))

    def _by_rows(self, w: Writer, names: Names) -> None:
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
