"""Lanes for sets that multiply matrices of bytes: two outputs by two channels, eight inputs at a time.

While accumulating, the two vectors of sums of neighbouring outputs hold the first two channels of both outputs, and the
other two. `exchange` converts to and from that form.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.real_lanes import RealVectors

BYTES = 16
"""Bytes of a vector."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPairs(IntegerVectors):
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
