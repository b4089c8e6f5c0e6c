"""Sums of more than 32 bits in 32-bit lanes: after some steps the upper half of each is carried to a second vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, Ints, int32s

HALF = 16
LOWER = (1 << HALF) - 1
MOST = INT32[1] - LOWER
"""The largest sum of products between two carries, before which less than a unit of the upper half is left."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CarriedSums(IntegerVectors):
    """A sum is carry * 2^16 + accumulator; totals are scaled one by one."""

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
