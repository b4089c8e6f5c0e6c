"""One row of a dense layer as dot products over a copy of its inputs, the sums of each output split over several.

A single row gives few sums to work on at a time, and each must wait for its last addition; so neighbouring steps add
to sums of their own, which are joined at the end. The work divides by blocks of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.loops.rows import each_block
from nnbuild.kernels.window import Weighted, window_of
from nnbuild.kernels.window_loops import total
from nnbuild.ops.site import Site

SLACK = 64
SUMS = 8
"""Vectors of sums that keep the multiplications busy."""


@dataclass(frozen=True, eq=False)
class Split(WindowNest[IntegerVectors]):
    def demand(self) -> Demand:
        lanes = self.lanes
        packed = dot.packed(self.site.constant("kernel"), lanes)
        return Demand(
            extent=dot.divide(self.window.filters, lanes).pieces,
            scratch=self.window.depth * np.dtype(lanes.scratch_type).itemsize + SLACK,
            scratch_type=lanes.scratch_type,
            packed={name: lanes.arranged(name, values) for name, values in packed.items()},
        )

    def emit(self, w: Writer, names: Names) -> None:
        self.lanes.copy(w, names.scratch, names.inputs[0], self.window.depth)
        each_block(w, names, self.lanes, self.window, names.scratch, lambda block: self._block(w, block))

    def _block(self, w: Writer, block: Block) -> None:
        lanes, steps = self.lanes, -(-self.window.depth // self.lanes.depth)
        parts = max(1, min(SUMS // block.vectors, steps))
        rounds, rest = divmod(steps, parts)
        for vector in range(block.vectors):
            lanes.start(w, f"sum0{vector}", str(vector * lanes.lanes))
            for part in range(1, parts):
                lanes.clear(w, f"sum{part}{vector}")
        with w.loop("i", rounds):
            self._steps(w, block, parts)
            w(f"from += {parts * lanes.depth};")
            w(f"k += {parts * block.vectors * lanes.lanes * lanes.depth};")
        if rest:
            with w.block(""):
                self._steps(w, block, rest)
        for vector in range(block.vectors):
            for part in range(1, parts):
                lanes.combine(w, "add", f"sum0{vector}", f"sum{part}{vector}")
            channel = vector * lanes.lanes
            with w.block(""):
                lanes.prepare(w, str(channel))
                real = min(lanes.lanes, block.channels - channel)
                lanes.store(w, f"sum0{vector}", total("to", str(channel)), str(channel), real)

    def _steps(self, w: Writer, block: Block, parts: int) -> None:
        """One step of each part, next to each other."""
        lanes, width = self.lanes, self.lanes.lanes * self.lanes.depth
        for part in range(parts):
            lanes.inputs(w, f"x{part}", total("from", str(part * lanes.depth)))
            for vector in range(block.vectors):
                name = f"w{part}{vector}"
                lanes.weights(w, name, total("k", str((part * block.vectors + vector) * width)))
                lanes.multiply(w, f"sum{part}{vector}", f"x{part}", name)


def split(site: Site[Weighted], lanes: IntegerVectors) -> Split:
    """The nest, with lanes for as many vectors as keep busy."""
    return Split(site, lanes.holding(min(SUMS, -(-window_of(site).filters // lanes.lanes))))
