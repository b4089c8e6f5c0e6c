"""Lanes of integer sums whose outputs are floats."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import STORE
from nnbuild.isa.float_results import FloatResults
from nnbuild.isa.integer_lanes import IntegerVectors


@dataclass(frozen=True, eq=False, kw_only=True)
class RealVectors(IntegerVectors):
    """The constants of `results` are read where they are needed."""

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
