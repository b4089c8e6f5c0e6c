"""Vectors of sums that are scaled one by one: where no constants of vectors are exact for every sum.

A dense layer of 16-bit outputs rounds a float64 product once, which 64 bits cannot always follow through 65,536 steps.
It has few outputs for its many products, so this costs little.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import LOAD_AS, IntegerLanes
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.kernels.loops.window_loops import total


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledSingly(IntegerVectors):
    """`single` scales and stores a sum, with the constants in `channels`."""

    single: IntegerLanes

    def prepare(self, w: Writer, channel: str) -> None:
        pass

    def scale(self, w: Writer, accumulator: str) -> None:
        raise NotImplementedError("these sums are scaled when they are stored")

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        held = f"{accumulator}_held"
        w(f"int32_t {held}[{self.lanes}];")
        w(f"{self.v.call(w, 'store', held, accumulator)};")
        with w.loop("lane", count):
            w(w.use(LOAD_AS, self.single.sum_type, "sum", f"{held}[lane]"))
            self.single.store(w, "sum", total(pointer, "lane"), total(channel, "lane"), 1)


def scaled_singly(lanes: IntegerVectors, single: IntegerLanes) -> ScaledSingly:
    return as_kind(ScaledSingly, lanes, single=single)
