"""Kinds of integer lanes: sums that become floats, sums of more than 32 bits, and outputs computed in pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import STORE
from nnbuild.isa.float_results import FloatResults
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, Ints, int32s

HALF = 16
LOWER = (1 << HALF) - 1
MOST = INT32[1] - LOWER
"""The largest sum of products between two carries, before which less than a unit of the upper half is left."""

BYTES = 16
"""Bytes of a vector."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RealVectors(IntegerVectors):
    """Outputs are floats. The constants of `results` are read where they are needed."""

    results: FloatResults

    def prepare(self, w: Writer, channel: str) -> None:
        """Nothing."""

    def scale(self, w: Writer, accumulator: str, count: int | None = None) -> None:
        """Nothing: sums are scaled when they are stored."""

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        self.store_lanes(w, accumulator, pointer, channel, range(count))

    def store_lanes(self, w: Writer, accumulator: str, pointer: str, channel: str, lanes: range) -> None:
        """Stores the sums of neighbouring lanes; the constants of lane 0 are those of `channel`."""
        results, v, first = self.results, self.v, lanes[0]
        if first == 0 and "f_of_sums" in v.spellings:
            real = f"{accumulator}_real"
            constants = {name: v.load(w, f"{name} + {channel}") for name in results.constants}
            results.declare_vector(w, v, real, accumulator, constants)
            v.store(w, pointer, real, len(lanes))
            return
        with w.block(""):
            self.single_sum(w, f"{accumulator}_held", accumulator)
            with w.loop("lane", len(lanes)):
                lane = f"lane + {first}"
                constants = {name: f"{name}[{channel} + {lane}]" for name in results.constants}
                results.declare(w, "real", f"{accumulator}_held[{lane}]", constants)
                w(w.use(STORE, f"({pointer})[lane]", "real"))


@dataclass(frozen=True, eq=False, kw_only=True)
class CarriedSums(IntegerVectors):
    """After some steps the upper half of each sum is carried to a second vector: a sum is carry * 2^16 + accumulator.
    Totals are scaled one by one."""

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        super().start(w, accumulator, channel)
        self._sums(w, f"{accumulator}_carry", self.v.call(w, "load", f"carry + {channel}"), "")

    def clear(self, w: Writer, accumulator: str) -> None:
        super().clear(w, accumulator)
        super().clear(w, f"{accumulator}_carry")

    def combine(self, w: Writer, operation: str, accumulator: str, other: str | int) -> None:
        assert operation == "add"
        super().combine(w, "add", accumulator, other)
        super().combine(w, "add", f"{accumulator}_carry", f"{other}_carry")

    def carry(self, w: Writer, accumulator: str) -> None:
        v = self.v
        super().combine(w, "add", f"{accumulator}_carry", v.call(w, "shift_right", accumulator, of=(HALF,)))
        w(f"{accumulator} = {v.call(w, 'and', accumulator, LOWER)};")

    def single_sum(self, w: Writer, held: str, accumulator: str) -> str:
        low = super().single_sum(w, held, accumulator)
        high = super().single_sum(w, f"{held}_carry", f"{accumulator}_carry")
        return f"(int64_t){high} * {1 << HALF} + {low}"


def carried(lanes: IntegerVectors, start: Ints) -> CarriedSums:
    """The lanes with sums that start at any number of 47 bits."""
    halves = {"bias": int32s(start & LOWER), "carry": int32s(start >> HALF)}
    return as_kind(CarriedSums, replace(lanes, channels={**lanes.channels, **halves}))


def pieces(weights: Array, runs: int, depth: int, together: int) -> list[int]:
    """The steps of a run of inputs, `depth` each, between two carries, in multiples of `together`: equal and the most
    that keep every channel's sum of any 16-bit numbers in 32 bits. weights: [taps, channels] of `runs` runs."""
    size = np.abs(weights.astype(np.int64)).reshape(runs, -1, depth, weights.shape[-1]).sum(axis=2) << 15
    steps = size.shape[1]
    for count in range(1, steps + 1):
        piece = -(-steps // (count * together)) * together
        if np.add.reduceat(size, range(0, steps, piece), axis=1).max() <= MOST:
            break
    return [min(piece, steps - at) for at in range(0, steps, piece)]


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPairs(IntegerVectors):
    """For sets that multiply matrices of bytes: two outputs by two channels, eight inputs at a time.

    While accumulating, the two vectors of sums of neighbouring outputs hold the first two channels of both outputs, and
    the other two. `exchange` converts to and from that form.
    """

    paired = True

    def fill(self, w: Writer, to: str, count: int) -> None:
        w.bill(count / (4 * self.lanes))
        w(f"{self.v.call(w, 'fill', to, str(count), str(self.padding), of=(4,))};")

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "bytes", name, self.v.call(w, "inputs", pointer, of=(4,)))

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "bytes", name, self.v.call(w, "inputs", pointer, of=(4,)))
        self.v.let(w, "bytes", f"{name}_next", self.v.call(w, "inputs", f"{pointer} + {BYTES}", of=(4,)))

    def join(self, w: Writer, name: str, inputs: tuple[str, str], step: int) -> None:
        row = "high_halves_of_bytes" if step else "low_halves_of_bytes"
        self.v.let(w, "bytes", name, self.v.call(w, row, *inputs))

    def multiply_both(self, w: Writer, accumulators: tuple[str, str], name: str, weights: str) -> None:
        for accumulator, taken in zip(accumulators, (weights, f"{weights}_next"), strict=True):
            w(f"{accumulator} = {self.v.call(w, 'mmla', accumulator, name, taken)};")

    def exchange(self, w: Writer, accumulators: tuple[str, str]) -> None:
        first, second = accumulators
        with w.block(""):
            self.v.let(w, "sums", "first", self.v.call(w, "low_halves", first, second))
            w(f"{second} = {self.v.call(w, 'high_halves', first, second)};")
            w(f"{first} = first;")


@dataclass(frozen=True, eq=False, kw_only=True)
class RealPairs(RealVectors, OutputPairs):
    """The same with outputs that are floats."""


def in_pairs(lanes: IntegerVectors) -> OutputPairs | None:
    """The same lanes for an even number of outputs, if the set multiplies matrices."""
    if "mmla" not in lanes.v.spellings or lanes.depth != 4 or lanes.apart[0] > 1:
        return None
    return as_kind(RealPairs if isinstance(lanes, RealVectors) else OutputPairs, lanes, depth=8, loaded=2)
