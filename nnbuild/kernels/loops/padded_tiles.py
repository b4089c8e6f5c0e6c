"""Convolution as dot products over a padded copy of the input: no borders, no read out of bounds.

The copy holds inputs in the form the multiplications need. It is made strip by strip, so that a strip and the weights
of one block of output channels stay in the nearest cache while the block is computed for all rows of the strip. All
tiles have one size; the last of a row overlaps the one before and recomputes a few outputs. A maximum pool in the
epilogue compares sums before they are scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_kinds import CarriedSums, in_pairs, pieces
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import Tile
from nnbuild.kernels.loops.window import Weighted, Window, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import copy_strip, each_strip_of_rows, repeated, strip_rows
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

SLACK = 64
"""Bytes behind the copy that padding to whole steps and the last taps may touch."""
Pair = tuple[str, str]
MOST_VECTORS = 4
OUTPUT_CYCLES = 5
SHUFFLE_CYCLES = 0.85
"""Cycles to load and shuffle the inputs of neighbouring outputs, which compete for the multipliers' units."""
FOR_SCALING = 3
"""Registers that a fused addition takes, or a 64-bit product in halves, where registers are few."""
UNROLLED = 4
"""Steps of a dot product up to which it is unrolled."""


@dataclass(frozen=True, eq=False)
class PaddedTiles(WindowNest[IntegerVectors]):
    tile: Tile

    @cached_property
    def window(self) -> Window:
        return window_of(self.site).joined()

    @property
    def size(self) -> int:
        """Bytes of an element of the copy."""
        return int(np.dtype(self.lanes.scratch_type).itemsize)

    @property
    def strip(self) -> int:
        """Output rows of one strip."""
        return strip_rows(self.window, self.window.padded_line * self.size)

    @property
    def run_steps(self) -> int:
        return -(-self.window.run // self.lanes.depth)

    @cached_property
    def pieces(self) -> list[int]:
        """Steps of a run after each of which sums are carried."""
        if not isinstance(self.lanes, CarriedSums):
            return [self.run_steps]
        weights = dot.filled(self.site.constant("kernel"), self.window, self.lanes.depth)
        return pieces(weights, self.lines, self.lanes.depth, self.lanes.loaded)

    @property
    def lines(self) -> int:
        """Runs of inputs under a window."""
        return self.window.rows.kernel * self.window.runs

    def best_tile(self) -> Tile:
        """The tile with the lowest estimated cost."""
        window, lanes = self.window, self.lanes
        places = window.outputs[1]
        most = lanes.most_places(window.share, window.step) if window.groups == 1 and lanes.added is None else 1
        tiles = [
            Tile(pixels, vectors, window.area, together)
            for together in range(1, min(most, places) + 1)
            for vectors in range(1, min(MOST_VECTORS, -(-window.share // lanes.lanes)) + 1)
            for pixels in range(1, self._most_pixels(vectors) + 1)
            if pixels * together <= places or pixels == 1
        ]
        if in_pairs(lanes):
            tiles = [tile for tile in tiles if tile.pixels * tile.area % 2 == 0 and tile.together == 1] or tiles
        return min(tiles, key=self._cost)

    def _most_pixels(self, vectors: int) -> int:
        """Positions whose sums fit in the registers that inputs and a step's weights leave."""
        lanes, area = self.lanes, self.window.area
        free = lanes.v.registers - lanes.loads - vectors - lanes.by_lane().busy
        if (lanes.added or (lanes.rounded is None and lanes.v.apart)) and lanes.v.sparing:
            free -= FOR_SCALING
        if isinstance(lanes, CarriedSums) and lanes.v.sparing:
            vectors *= 2
        return max(1, free // (vectors * area + (area if lanes.depth > 1 and lanes.by_lane().loaded > 1 else 0)))

    def _cost(self, tile: Tile) -> float:
        """Estimated cycles of a row: each step's products, loads or latency, and the outputs."""
        lanes, sums = self.lanes, tile.pixels * tile.area
        loads = sums + tile.vectors * lanes.loads
        work = tile.sums * lanes.v.price("dot", lanes.depth, lanes.lift) + (
            sums * SHUFFLE_CYCLES if tile.together > 1 else 0
        )
        step = max(work, loads * lanes.load_cycles, 3) + 0.5
        if lanes.depth == 1:  # scalar inputs, and weights that widen when loaded: one instruction after the other
            step = tile.sums + sums + 2 * tile.vectors + 0.5
        tiles = -(-self.window.outputs[1] // tile.outputs)
        blocks = -(-self.window.share // (tile.vectors * lanes.lanes))
        return blocks * tiles * (step * self.lines * self.run_steps + OUTPUT_CYCLES * tile.pixels * tile.vectors)

    def demand(self) -> Demand:
        copied = self.window.rows_under(self.strip) * self.window.padded_line * self.size
        return Demand(
            extent=self.window.outputs[0],
            scratch=copied + SLACK,
            scratch_type=self.lanes.scratch_type,
            packed=self._packed(),
        )

    def _packed(self) -> dict[str, Array]:
        """Pads every run of taps to whole steps with zero weights, by which any input may be multiplied."""
        window, lanes = self.window, self.lanes
        weights = dot.filled(self.site.constant("kernel"), window, lanes.depth)
        weights = lanes.repeated(weights) if lanes.apart[0] > 1 else weights
        packed = dot.packed(weights, lanes, window.groups)
        return {name: lanes.arranged(name, values) for name, values in packed.items()}

    def emit(self, w: Writer, names: Names) -> None:
        window, lanes, places = self.window, self.lanes, self.window.outputs[1]
        with each_strip_of_rows(w, window, self.strip):
            self._copy(w, names)
            w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
            dot.declare_channels(w, lanes, names.packed)
            ends = names.outputs[0], names.inputs[1] if lanes.added else ""
            self._outputs(w, ("to", "beside"), ends, f"strip * {places} * {window.filters}")
            if window.groups > 1:
                w(f"const {lanes.input_type} *from = {names.scratch};")
                with w.loop("group", window.groups):
                    self._blocks(w, "from")
                    w(f"from += {window.depth};")
            else:
                self._blocks(w, names.scratch)

    def _outputs(self, w: Writer, declared: Pair, bases: Pair, by: str) -> None:
        """Declares pointers to an output and to the same element of the residual."""
        w(f"{self.lanes.output_type} *{declared[0]} = {bases[0]} + {by};")
        if self.lanes.added:
            w(f"const {self.lanes.output_type} *{declared[1]} = {bases[1]} + {by};")

    def _copy(self, w: Writer, names: Names) -> None:
        """Copies the input rows under a strip, with padding."""
        window, lanes, size = self.window, self.lanes, self.window.padded_line

        def copy(row: str) -> None:
            source = f"{names.inputs[0]} + ({row}) * {window.line}"
            if window.inside:
                lanes.copy(w, "line", source, size)
            else:
                copy_between(w, lanes, source, window, size)

        blank = None if window.inside else partial(lanes.fill, w, "line", size)
        line = f"{lanes.input_type} *line = {names.scratch} + y * {size};"
        copy_strip(w, window, self.strip, line, copy, blank)

    def _blocks(self, w: Writer, source: str) -> None:
        window, lanes = self.window, self.lanes
        for block, times in self._divided():
            with w.loop("block", times):
                with w.loop("y", "rows", trips=self.strip):
                    down = f"y * {window.row_step * window.padded_line}"
                    w(f"const {lanes.input_type} *across = {source} + {down};")
                    row = f"y * {window.outputs[1] * window.filters}"
                    self._outputs(w, ("place", "place_beside"), ("to", "beside"), row)
                    self._row(w, block)
                w(f"taps += {self.lines * self.run_steps * block.vectors * lanes.lanes * lanes.depth};")
                dot.next_block(w, lanes, block)
                w(f"to += {block.channels};")
                if lanes.added:
                    w(f"beside += {block.channels};")

    def _divided(self) -> list[tuple[Block, int]]:
        """(block of output channels, count)."""
        if self.tile.together > 1:
            return [(Block(1, self.tile.together * self.window.filters), 1)]
        return dot.divide(self.window.share, self.lanes).classes()

    def _row(self, w: Writer, block: Block) -> None:
        """One block of output channels for one output row."""
        count, places = self.tile.outputs, self.window.outputs[1]
        if places <= count:
            self._tile(w, block, "across", ("place", "place_beside"))
            return
        last = places - count
        with w.loop("tile", places, step=count):
            w(f"const int32_t x = {'tile' if places % count == 0 else f'tile < {last} ? tile : {last}'};")
            w(f"const {self.lanes.input_type} *window = across + x * {self.window.step};")
            self._outputs(w, ("at", "at_beside"), ("place", "place_beside"), f"x * {self.window.filters}")
            self._tile(w, block, "window", ("at", "at_beside"))

    def _tile(self, w: Writer, block: Block, inputs: str, to: Pair) -> None:
        window, lanes, steps = self.window, self.lanes, self.run_steps
        positions = window.positions(self.tile.pixels, window.padded_line, self.tile.together)
        dot.start(w, lanes, len(positions), block)
        dot.exchange(w, lanes, len(positions), block)
        w(f"const {lanes.weight_type} *k = {lanes.late_pointer(w, 'taps')};")
        line, run = window.rows.dilation * window.padded_line, window.columns.dilation * window.channels
        if self.lines * steps <= UNROLLED and lanes.loaded == 1:
            for index in range(self.lines * steps):
                ky, (kx, i) = index // (window.runs * steps), divmod(index % (window.runs * steps), steps)
                at = ky * line + kx * run + i * lanes.depth
                with w.block(""):
                    self._step(w, block, [f"{inputs} + {at + p}" for p in positions], index)
        else:
            with w.loop("ky", window.rows.kernel):
                w(f"const {lanes.input_type} *row = {inputs} + ky * {line};")
                with repeated(w, "kx", window.runs):
                    first = 0
                    for piece in self.pieces:
                        self._along(w, block, positions, first, piece)
                        dot.carry(w, lanes, len(positions), block)
                        first += piece
                    if window.runs > 1:
                        w(f"row += {run - (steps * lanes.depth if lanes.loaded == 1 else 0)};")
        self._finish(w, block, to)

    def _along(self, w: Writer, block: Block, positions: list[int], first: int, steps: int) -> None:
        """Steps of a run of inputs from `row`, which single steps advance."""
        lanes, places = self.lanes, [str(first * self.lanes.depth + p) for p in positions]
        if lanes.loaded > 1:
            dot.along(w, lanes, block, steps, lambda i: [f"row + {i} + {place}" for place in places])
            return
        with w.loop("i", steps):
            self._step(w, block, [f"row + {p}" for p in positions], 0)
            w(f"row += {lanes.depth};")
            w(f"k += {block.vectors * lanes.lanes * lanes.depth};")

    def _step(self, w: Writer, block: Block, inputs: list[str], index: int) -> None:
        step = block.vectors * self.lanes.lanes * self.lanes.depth
        dot.multiply(w, self.lanes, block, inputs, f"k + {index * step}")

    def _finish(self, w: Writer, block: Block, to: Pair) -> None:
        """The maxima of each pool's sums, as outputs."""
        lanes, area = self.lanes, self.window.area
        dot.exchange(w, lanes, self.tile.pixels * area, block)
        dot.settle(w, lanes.v, "settled", self.tile.pixels * area, block)
        for vector in range(block.vectors):
            channel = vector * lanes.lanes
            real = min(lanes.lanes, block.channels - channel)
            with w.block(""):
                lanes.prepare(w, str(channel))
                for output in range(self.tile.pixels):
                    best = f"sum{output * area}{vector}"
                    for other in range(1, area):
                        lanes.combine(w, "max", best, f"sum{output * area + other}{vector}")
                    by = output * self.tile.together * self.window.filters + channel
                    place, beside = (f"{pointer} + {by}" for pointer in to)
                    if lanes.added:
                        lanes.store_sum(w, best, place, beside, real)
                    else:
                        lanes.store(w, best, place, str(channel), real)


def padded(site: Site[Weighted], lanes: IntegerVectors, nest: type[PaddedTiles] = PaddedTiles) -> PaddedTiles:
    """The nest with the best tile and lanes prepared for it."""
    draft = nest(site, lanes, Tile(1, 1))
    tile, window = draft.best_tile(), draft.window
    held = lanes.holding(tile.vectors, (tile.together, window.filters, window.step))
    pairs = in_pairs(held) if tile.pixels * tile.area % 2 == 0 else None
    return replace(draft, lanes=pairs or held.by_lane(), tile=tile)


def copy_between(w: Writer, lanes: IntegerVectors, source: str, window: Window, line: int) -> None:
    """Copies a row of inputs into a line of `line` elements, with zeros on either side."""
    first, count = window.columns.pad * window.channels, window.columns.taken * window.channels
    if first:
        lanes.fill(w, "line", first)
    lanes.copy(w, f"line + {first}", source, count)
    if first + count < line:
        lanes.fill(w, f"line + {first + count}", line - first - count)
