"""Integer convolutions and dense layers of few output channels: neighbouring inputs are the lanes, not channels.

A vector of sums belongs to one output. It takes whole vectors of inputs and of one channel's weights, and its lanes are
added up at the end. The outputs of neighbouring positions then share a vector, which is scaled and stored at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.integer_ops import READY, TAPS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import OnEach, of_set
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.padded_tiles import OUTPUT_CYCLES, UNROLLED, PaddedTiles, Pair
from nnbuild.kernels.loops.tiling import Tile
from nnbuild.kernels.loops.window import Weighted, window_of
from nnbuild.kernels.loops.window_loops import repeated
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

OTHERWISE = {1: "h_load", 2: "weights"}
"""The operation that loads inputs of the other type."""
JOIN_CYCLES = 2
"""Estimated cycles to add up the lanes of one output."""


@dataclass(frozen=True, eq=False)
class SummedTiles(PaddedTiles):
    """A tile is some parts, of whose positions all sums are in registers at once."""

    parts: int = 1

    @property
    def positions(self) -> int:
        """Of one part."""
        return self.tile.outputs // self.parts

    @property
    def width(self) -> int:
        """Inputs of one vector."""
        return self.lanes.v.lanes * self.lanes.depth

    @property
    def run_steps(self) -> int:
        return -(-self.window.run // self.width)

    @cached_property
    def pieces(self) -> list[int]:
        return [self.run_steps]

    def best(self) -> SummedTiles:
        """With the tile of the lowest estimated cost."""
        v, filters, places = self.lanes.v, self.window.filters, self.window.outputs[1]
        together = v.lanes // filters
        several = 1 if _adds_up(v) else together
        found = [
            replace(self, tile=Tile(1, 1, together=positions * parts), parts=parts)
            for positions in range(1, min(most_sums(v) // filters, places) + 1)
            for parts in range(1, several + 1)
            if positions * parts <= min(together, places)
        ]
        return min(found, key=lambda nest: nest.cost())

    def cost(self) -> float:
        """Estimated cycles of a row."""
        filters, positions = self.window.filters, self.positions
        loads = positions * self.lanes.load_cycles + filters * self.lanes.loads
        step = positions * filters * self.lanes.v.price(*_dot(self.lanes)) + loads
        part = step * self.lines * self.run_steps + positions * filters * JOIN_CYCLES
        tiles = -(-self.window.outputs[1] // self.tile.outputs)
        return tiles * (self.parts * part + 2 * OUTPUT_CYCLES)

    def _packed(self) -> dict[str, Array]:
        """Pads every run of taps to whole vectors with zero weights, by which any input may be multiplied."""
        filters = self.window.filters
        weights = dot.filled(self.site.constant("kernel"), self.window, self.width)
        ordered = weights.reshape(-1, self.width, filters).transpose(0, 2, 1).reshape(-1)
        channels = {name: dot.pack_channels(values, self.lanes) for name, values in self.lanes.channels.items()}
        return {name: self.lanes.arranged(name, values) for name, values in ({"kernel": ordered} | channels).items()}

    def _divided(self) -> list[tuple[Block, int]]:
        return [(Block(1, self.tile.outputs * self.window.filters), 1)]

    def _tile(self, w: Writer, block: Block, inputs: str, to: Pair) -> None:
        v, filters, step = self.lanes.v, self.window.filters, self.window.step
        names = [f"sum{place}{channel}" for place in range(self.positions) for channel in range(filters)]
        if _adds_up(v):
            self._sum(w, inputs, names)
            v.let(w, "sums", "result", v.call(w, "sums_across", *names, of=(len(names),)), "")
        else:
            w(f"int32_t totals[{v.lanes}]{'' if block.channels == v.lanes else ' = {0}'};")
            with repeated(w, "part", self.parts):
                first = f"{inputs} + part * {self.positions * step}" if self.parts > 1 else inputs
                self._sum(w, first, names)
                for index, name in enumerate(names):
                    at = f"part * {len(names)} + {index}" if self.parts > 1 else index
                    w(f"totals[{at}] = {v.call(w, 'sum_across', name)};")
                    w.bill(1)
            v.let(w, "sums", "result", v.call(w, "load", "totals"), "")
        self.lanes.start(w, "bias_now", "0")
        self.lanes.combine(w, "add", "result", "bias_now")
        self.lanes.prepare(w, "0")
        self.lanes.store(w, "result", to[0], "0", block.channels)

    def _sum(self, w: Writer, inputs: str, names: list[str]) -> None:
        """Declares the sums of a part, whose first inputs are at `inputs`."""
        window, lanes, steps = self.window, self.lanes, self.run_steps
        for name in names:
            lanes.clear(w, name)
        w(f"const {lanes.weight_type} *k = {lanes.late_pointer(w, 'taps')};")
        line, run = window.rows.dilation * window.padded_line, window.columns.dilation * window.channels
        if self.lines * steps <= UNROLLED:
            for index in range(self.lines * steps):
                ky, (kx, i) = index // (window.runs * steps), divmod(index % (window.runs * steps), steps)
                self._multiply(w, f"{inputs} + {ky * line + kx * run + i * self.width}", index)
            return
        with w.loop("ky", window.rows.kernel), repeated(w, "kx", window.runs):
            at = f"{inputs} + ky * {line} + kx * {run if window.runs > 1 else 0}"
            w(f"const {lanes.input_type} *row = {at};")
            with w.loop("i", steps):
                self._multiply(w, "row", 0)
                w(f"row += {self.width};")
                w(f"k += {window.filters * self.width};")

    def _multiply(self, w: Writer, inputs: str, index: int) -> None:
        """A step of all sums of a part."""
        v, lanes, filters = self.lanes.v, self.lanes, self.window.filters
        with w.block(""):
            for channel in range(filters):
                lanes.weights(w, f"w{channel}", f"k + {(index * filters + channel) * self.width}")
            for place in range(self.positions):
                row = "inputs" if lanes.input_type == READY[lanes.depth] else OTHERWISE[lanes.depth]
                of = () if row == "h_load" else (lanes.depth,)
                x = v.call(w, row, f"{inputs} + {place * self.window.step}", of=of)
                v.let(w, TAPS[lanes.depth], f"x{place}", x)
                for channel in range(filters):
                    name, *by = _dot(lanes)
                    sums = f"sum{place}{channel}"
                    w(f"{sums} = {v.call(w, name, sums, f'x{place}', f'w{channel}', of=tuple(by))};")


def _dot(lanes: IntegerVectors) -> tuple[str, *tuple[int, ...]]:
    """The operation that multiplies vectors of inputs by weights, with its parameters."""
    if lanes.depth == 2 and "dot_halves" in lanes.v.spellings:
        return ("dot_halves",)
    return ("dot_lanes",) if lanes.depth == 1 else ("dot", lanes.depth, lanes.lift)


def _adds_up(v: Vectors) -> bool:
    """Whether a set adds up the lanes of several vectors at once."""
    return "sums_across" in v.spellings


def most_sums(v: Vectors) -> int:
    """Sums that are in registers at once, at most a vector of outputs."""
    return min(v.lanes, v.registers // 2)


def refused(v: Vectors, site: Site[Weighted]) -> str | None:
    window = window_of(site)
    if site.tail or window.groups > 1:
        return "it computes neither groups nor what follows"
    if window.filters > min(most_sums(v), v.lanes - 1):
        return "its channels fill the lanes already"
    return integer_layers.refused(v, site)


def summed(v: Vectors, site: Site[Weighted]) -> SummedTiles:
    return tiled(SummedTiles, site, integer_layers.lanes_of(v, site))


def tiled(nest: type[SummedTiles], site: Site[Weighted], lanes: IntegerVectors) -> SummedTiles:
    """The nest with the best tile."""
    best = nest(site, lanes, Tile(1, 1)).best()
    held = lanes.holding(1, (best.tile.together, best.window.filters, best.window.step))
    return replace(best, lanes=held)


VARIANTS: OnEach[Any] = OnEach("sums", lambda v: [of_set(v, "_summed", refused, summed)])
"""The kernels, of convolutions and dense layers alike."""
