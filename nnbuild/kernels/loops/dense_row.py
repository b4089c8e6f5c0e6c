"""One row of a dense layer as dot products; a work item is a block of outputs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_kinds import CarriedSums, pieces
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.vector_epilogue import declare_outputs, epilogue_of
from nnbuild.kernels.loops import dot, softmax_row
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import stall
from nnbuild.kernels.loops.window import Weighted, WindowNest, window_of
from nnbuild.ops.site import Site

L = TypeVar("L", bound=Lanes, covariant=True)
SLACK = 64
UNROLLED = 4
"""Inputs an iteration of a row of single lanes."""
SUMS = 8
"""Accumulator vectors that keep the multipliers busy."""


@dataclass(frozen=True, eq=False)
class SingleRow(WindowNest[L]):
    def demand(self) -> Demand:
        packed = dot.packed(self.site.constant("kernel"), self.lanes)
        blocks = dot.divide(self.window.filters, self.lanes)
        return Demand(extent=blocks.number, packed=packed, each=blocks.full.vectors * self.lanes.lanes)

    def emit(self, w: Writer, names: Names, source: str = "") -> None:
        """`source` is the copy of the inputs, where there is one."""
        lanes, blocks = self.lanes, dot.divide(self.window.filters, self.lanes)
        width = blocks.full.vectors * lanes.lanes
        size = -(-self.window.depth // lanes.depth) * lanes.depth * width
        with w.loop("block", "end", start="begin", trips=blocks.number):
            w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + block * {size};")
            dot.declare_channels(w, lanes, names.packed, f" + block * {width}")
            w(f"const {lanes.input_type} *from = {source or names.inputs[0]};")
            declare_outputs(w, lanes.output_type, names, f"block * {width}")
            dot.by_size(w, blocks, partial(self._block, w))

    def _block(self, w: Writer, block: Block) -> None:
        dot.start(w, self.lanes, 1, block)
        with w.loop("i", self.window.depth):
            dot.multiply(w, self.lanes, block, ["from + i"], "k")
            w(f"k += {block.vectors * self.lanes.lanes};")
        dot.store(w, self.lanes, block, ["to"])


@dataclass(frozen=True, eq=False)
class UnrolledRow(SingleRow[L]):
    """For single lanes: a few inputs an iteration."""

    def _block(self, w: Writer, block: Block) -> None:
        dot.start(w, self.lanes, 1, block)
        whole = self.window.depth // UNROLLED * UNROLLED
        with w.loop("i", whole, step=UNROLLED):
            self._some(w, block, "from + i", UNROLLED)
        self._some(w, block, f"from + {whole}", self.window.depth - whole)
        dot.store(w, self.lanes, block, ["to"])

    def _some(self, w: Writer, block: Block, source: str, count: int) -> None:
        """Takes `count` inputs, and moves on to the weights behind theirs."""
        for step in w.each(range(count)):
            weights = f"k + {step * block.vectors}"
            dot.multiply(w, self.lanes, block, [f"{source} + {step}"], weights)
        if count:
            w(f"k += {count * block.vectors};")


@dataclass(frozen=True, eq=False)
class Split(SingleRow[L]):
    """Splits the sum of each output over several accumulators, which are added at the end.

    A single row has few sums, each waiting for its previous addition; so consecutive steps use separate accumulators.
    """

    @property
    def steps(self) -> int:
        return self.window.depth // self.lanes.depth

    @property
    @abstractmethod
    def sums(self) -> int:
        """Accumulators of a block."""

    def pieces(self, splits: int) -> list[int]:
        """Steps after each of which sums are carried: whole rounds of all accumulators, but for the last ones."""
        return [self.steps]

    def _block(self, w: Writer, block: Block) -> None:
        """Accumulator `split` of a vector takes every splits-th step; the first ones start with the bias."""
        lanes, splits = self.lanes, max(1, min(self.sums // block.vectors, self.steps))
        for vector in range(block.vectors):
            lanes.start(w, f"sum0{vector}", str(vector * lanes.lanes))
            for split in range(1, splits):
                lanes.clear(w, f"sum{split}{vector}")
        step, at = splits * lanes.depth, 0
        for piece in self.pieces(splits):
            rounds, left = divmod(piece, splits)
            end = at + rounds * step
            with w.loop("i", end, start=at, step=step):
                self._take(w, block, splits, "from + i")
                w(f"k += {splits * block.vectors * lanes.lanes * lanes.depth};")
            self._take(w, block, left, f"from + {end}")
            dot.carry(w, lanes, splits, block)
            at = end
        self._rest(w, block, left)
        for vector in range(block.vectors):
            self._join(w, [f"sum{split}{vector}" for split in range(splits)])
        self._finish(w, block)

    def _take(self, w: Writer, block: Block, count: int, source: str) -> None:
        """One step for each of the first `count` accumulators."""
        for split in range(count):
            self.lanes.inputs(w, f"x{split}", f"{source} + {split * self.lanes.depth}")
            self._multiply(w, block, split, split)

    def _multiply(self, w: Writer, block: Block, step: int, split: int) -> None:
        """Adds the products of a step to one accumulator of every vector."""
        for vector in range(block.vectors):
            index = step * block.vectors + vector
            self.lanes.weights(w, f"w{index}", f"k + {index * self.lanes.lanes * self.lanes.depth}")
            self.lanes.multiply_by(w, f"sum{split}{vector}", f"x{step}", 0, f"w{index}")

    def _join(self, w: Writer, sums: list[str]) -> None:
        """Adds the accumulators of one vector pairwise into the first."""
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for first, second in zip(sums, sums[half:], strict=False):
                self.lanes.combine(w, "add", first, second)
            sums = sums[:half]

    def _rest(self, w: Writer, block: Block, step: int) -> None:
        """The remaining inputs, which fill no step."""

    @abstractmethod
    def _finish(self, w: Writer, block: Block) -> None:
        """Scales and stores the outputs."""


@dataclass(frozen=True, eq=False)
class SplitIntegers(Split[IntegerVectors]):
    """Works on a copy of the inputs, padded to whole steps."""

    @property
    def sums(self) -> int:
        return accumulators_of(self.lanes)

    @property
    def steps(self) -> int:
        return -(-self.window.depth // self.lanes.depth)

    def pieces(self, splits: int) -> list[int]:
        if not isinstance(self.lanes, CarriedSums):
            return super().pieces(splits)
        weights = dot.filled(self.site.constant("kernel"), self.window, self.lanes.depth)
        return pieces(weights, 1, self.lanes.depth, splits)

    def demand(self) -> Demand:
        plain, kind = super().demand(), self.lanes.scratch_type
        packed = {name: self.lanes.arranged(name, values) for name, values in plain.packed.items()}
        scratch = self.window.depth * np.dtype(kind).itemsize + SLACK
        return replace(plain, scratch=scratch, scratch_type=kind, packed=packed)

    def emit(self, w: Writer, names: Names, source: str = "") -> None:
        self.lanes.copy(w, names.scratch, names.inputs[0], self.window.depth)
        super().emit(w, names, names.scratch)

    def _finish(self, w: Writer, block: Block) -> None:
        finish(w, self.lanes, block)


def finish(w: Writer, lanes: IntegerVectors, block: Block) -> None:
    """Scales and stores a block's sums."""
    dot.settle(w, lanes.v, "settled", 1, block)
    for vector in range(block.vectors):
        channel = vector * lanes.lanes
        with w.block(""):
            lanes.prepare(w, str(channel))
            real = min(lanes.lanes, block.channels - channel)
            lanes.store(w, f"sum0{vector}", f"to + {channel}", str(channel), real)


def split_integers(site: Site[Weighted], lanes: IntegerVectors) -> SplitIntegers:
    """The nest, with lanes for as many vectors as keep the multipliers busy."""
    return SplitIntegers(site, lanes.holding(min(accumulators_of(lanes), -(-window_of(site).filters // lanes.lanes))))


def accumulators_of(lanes: IntegerVectors) -> int:
    """Accumulator vectors that leave registers for scaling."""
    return SUMS if lanes.v.registers > SUMS else 2


@dataclass(frozen=True, eq=False)
class SplitFloats(Split[VectorLanes]):
    """With the epilogue; a softmax waits for all outputs."""

    @property
    def sums(self) -> int:
        return float_accumulators_of(self.lanes.floats)

    def _take(self, w: Writer, block: Block, count: int, source: str) -> None:
        super()._take(w, block, count, source)
        if count:
            w.bill(stall(1, block.vectors * count))

    def _rest(self, w: Writer, block: Block, step: int) -> None:
        rest = self.window.depth % self.lanes.depth
        if rest:
            self.lanes.lane_inputs(w, f"x{step}", f"from + {self.window.depth - rest}", rest)
            self._multiply(w, block, step, 0)

    def _finish(self, w: Writer, block: Block) -> None:
        lanes, channels = self.lanes, range(0, block.vectors * self.lanes.lanes, self.lanes.lanes)
        counts = [min(lanes.lanes, block.channels - channel) for channel in channels]
        sums = [f"sum0{vector}" for vector in range(block.vectors)]
        for name, channel, count in zip(sums, channels, counts, strict=True):
            lanes.gather(w, name, str(channel))
            lanes.complete(w, name, f"to + {channel}", str(channel), count)
        if epilogue_of(self.site).softmax:
            softmax_row.emit(w, lanes.floats, sums, counts)
        for name, channel, count in zip(sums, channels, counts, strict=True):
            lanes.floats.store(w, f"to + {channel}", name, count)


def float_accumulators_of(floats: Vectors) -> int:
    """Accumulator vectors that leave registers for the weights that compilers load early."""
    registers = floats.tile_registers
    return min(SUMS, registers // 3 if floats.unsaved else registers - 3)
