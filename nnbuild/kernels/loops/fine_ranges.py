"""Tiled convolutions with small work items, one block of channels of one line: for callers that must not wait long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.padded_tiles import PaddedTiles
from nnbuild.kernels.loops.vector_tiles import VectorTiles
from nnbuild.kernels.loops.window import Window
from nnbuild.kernels.loops.window_loops import with_last

LONG_LINE = 5_000
"""Cycles of a line from which it is worth dividing, at one vector of sums a cycle."""
ITEM_CYCLES = 30
"""Cycles to locate a work item and to reload what the previous one held."""
FAR_CYCLES = 4
"""Cycles of a vector of weights, which come from a far cache for every line."""


@dataclass(frozen=True, eq=False)
class FineVectorTiles(VectorTiles):
    """Floats, of one group of channels."""

    def fetches(self, block: Block) -> bool:
        return False

    @property
    def by_block(self) -> bool:
        return False

    @property
    def per_line(self) -> int:
        return self.blocks.number

    def demand(self) -> Demand:
        whole = super().demand()
        return replace(whole, extent=whole.extent * self.per_line, grain=self.per_line)

    def emit(self, w: Writer, names: Names) -> None:
        lanes, full = self.lanes, self.blocks.full
        lines = sum(part.count for part in self.parts) if self.flat else self.lines
        with w.loop("piece", "end", start="begin", trips=lines * self.per_line):
            w.bill(ITEM_CYCLES + (FAR_CYCLES * self.weights(full) / lanes.lanes if self.block_first else 0))
            w(f"const int32_t y = piece / {self.per_line};")
            w(f"const int32_t block = piece % {self.per_line};")
            if self.copied:
                with w.block("if (piece == begin || block == 0)"), w.trips(1 / self.per_line):
                    self.copy_rows(w, names, between=("y", "y + 1"))
            w(f"const {lanes.weight_type} *taps = {names.packed['kernel']} + block * ({self.weights(full)});")
            dot.declare_channels(w, lanes, names.packed, f" + block * {full.vectors * lanes.lanes}")
            w(f"const int32_t channel = block * {full.channels};")
            dot.by_size(w, self.blocks, partial(self._line, w, names))

    def _line(self, w: Writer, names: Names, block: Block) -> None:
        if self.flat:
            self._part(w, block, names)
            return
        self.declare_top(w)
        self._tiles(w, block, names, None)

    def _part(self, w: Writer, block: Block, names: Names) -> None:
        """The tile `y` of a flat convolution's one line."""
        tile, count = 0, sum(part.count for part in self.parts)
        for part in self.parts:
            last = tile + part.count
            head = "" if len(self.parts) == 1 else "else" if part == self.parts[-1] else f"if (y < {last})"
            head = f"else {head}" if tile and head.startswith("if") else head
            with w.block(head), w.trips(part.count / count):
                w(f"const int32_t x = y * {part.size} + {part.place - tile * part.size};")
                self._tiles(w, block, names, part.size)
            tile = last


@dataclass(frozen=True, eq=False)
class FinePaddedTiles(PaddedTiles):
    """Integers: a work item is one line by one block of channels, of one group."""

    @property
    def strip(self) -> int:
        return 1

    @property
    def per_line(self) -> int:
        return sum(times for _, times in self._divided())

    def demand(self) -> Demand:
        whole = super().demand()
        return replace(whole, extent=whole.extent * self.per_line, grain=self.per_line)

    def emit(self, w: Writer, names: Names) -> None:
        window, lanes, count = self.window, self.lanes, self.per_line
        (full, times), *rest = self._divided()
        width = full.vectors * lanes.lanes
        weights = self.lines * self.run_steps * width * lanes.depth
        with w.loop("piece", "end", start="begin", trips=window.outputs[0] * count):
            w.bill(ITEM_CYCLES + FAR_CYCLES * weights / (lanes.lanes * lanes.depth))
            w(f"const int32_t strip = piece / {count};")
            w(f"const int32_t block = piece % {count};")
            with w.block("if (piece == begin || block == 0)"), w.trips(1 / count):
                w("const int32_t rows = 1;")
                self._copy(w, names)
            w(f"const {lanes.weight_type} *taps = {names.packed['kernel']} + block * {weights};")
            dot.declare_channels(w, lanes, names.packed, f" + block * {width}")
            line = f"strip * {window.outputs[1]} * {window.filters}"
            ends = names.outputs[0], names.inputs[1] if lanes.added else ""
            self._outputs(w, ("place", "place_beside"), ends, f"{line} + block * {full.channels}")
            w(f"const {lanes.input_type} *across = {names.scratch};")
            last = partial(self._row, w, rest[0][0]) if rest else None
            with_last(w, "block", times, partial(self._row, w, full), last)


def refused(window: Window, lanes: int) -> str | None:
    if window.groups > 1 or window.filters <= lanes:
        return "its channels fill only one block"
    short = window.taps * window.filters * window.outputs[1] * window.area < LONG_LINE * lanes
    return "its lines are short enough undivided" if short and not window.flat else None
