"""One row of a dense layer in vectors of floats.

It is bound by the weights it reads and by the latency of sums, so every sum is split into several that take turns.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot, softmax_row
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.loops.rows import each_block
from nnbuild.kernels.loops.tiling import stall
from nnbuild.kernels.vector_tail import tail_of
from nnbuild.kernels.window_loops import total

SUMS = 8
"""So many sums at once keep a core from waiting for them."""


@dataclass(frozen=True, eq=False)
class SplitFloats(WindowNest[VectorLanes]):
    def demand(self) -> Demand:
        pieces = dot.divide(self.window.filters, self.lanes).pieces
        return Demand(extent=pieces, packed=dot.packed(self.site.constant("kernel"), self.lanes))

    def emit(self, w: Writer, names: Names) -> None:
        each_block(w, names, self.lanes, self.window, "", lambda block: self._block(w, names, block))

    def _block(self, w: Writer, names: Names, block: Block) -> None:
        """Sum `split` of a vector takes every splits-th step; the first ones begin with the bias."""
        lanes = self.lanes
        whole, rest = divmod(self.window.depth, lanes.depth)
        splits = max(1, min(SUMS // block.vectors, whole))
        for split in range(splits):
            for vector in range(block.vectors):
                if split == 0:
                    lanes.start(w, f"sum0{vector}", str(vector * lanes.lanes))
                else:
                    lanes.floats.declare(w, f"sum{split}{vector}", lanes.floats.each(w, 0.0))
        rounds, left = divmod(whole, splits)
        with w.loop("i", rounds * splits * lanes.depth, step=splits * lanes.depth):
            self._steps(w, names, block, splits, "i")
        self._steps(w, names, block, left, str(rounds * splits * lanes.depth))
        if rest:
            with w.block(""):
                at = dot.offset(names.inputs[0], whole * lanes.depth)
                lanes.floats.declare(w, "x", lanes.floats.load(w, at, rest))
                self._multiply(w, block, 0)
        self._finish(w, block, splits)

    def _steps(self, w: Writer, names: Names, block: Block, count: int, first: str) -> None:
        """One step of each of the first sums."""
        lanes = self.lanes
        for split in range(count):
            with w.block(""):
                lanes.inputs(w, "x", f"{names.inputs[0]} + {total(first, str(split * lanes.depth))}")
                self._multiply(w, block, split)
        if count:
            w.bill(stall(1, block.vectors * count))
            w(f"k += {count * block.vectors * lanes.floats.lanes};")

    def _multiply(self, w: Writer, block: Block, split: int) -> None:
        for vector in range(block.vectors):
            at = (split * block.vectors + vector) * self.lanes.floats.lanes
            self.lanes.weights(w, f"w{vector}", dot.offset("k", at))
            self.lanes.multiply(w, f"sum{split}{vector}", "x", f"w{vector}")

    def _finish(self, w: Writer, block: Block, splits: int) -> None:
        lanes = self.lanes
        channels = range(0, block.vectors * lanes.lanes, lanes.lanes)
        counts = [min(lanes.lanes, block.channels - channel) for channel in channels]
        sums = [f"sum0{vector}" for vector in range(block.vectors)]
        for vector, (channel, count) in enumerate(zip(channels, counts, strict=True)):
            self._join(w, [f"sum{split}{vector}" for split in range(splits)])
            lanes.gather(w, sums[vector], str(channel))
            lanes.complete(w, sums[vector], dot.offset("to", channel), count)
        if tail_of(self.site).softmax:
            softmax_row.emit(w, lanes.floats, sums, counts)
        for name, channel, count in zip(sums, channels, counts, strict=True):
            lanes.floats.store(w, dot.offset("to", channel), name, count)

    def _join(self, w: Writer, sums: list[str]) -> None:
        """Adds up the sums of one vector in pairs, into the first."""
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for first, second in zip(sums, sums[half:], strict=False):
                w(f"{first} = {self.lanes.floats.use(w, 'add', first, second)};")
            sums = sums[:half]
