"""Sums of products of floats with weights of bytes, each multiplied by the factor of its output channel."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes

FACTOR = "kernel_factor"


@dataclass(frozen=True, eq=False, kw_only=True)
class NarrowFloatLanes(VectorLanes):
    weight_type: str = "int8_t"

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        self.clear(w, accumulator)

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.floats.declare(w, name, self.floats.load_bytes(w, pointer))

    def complete(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        factor = self.floats.load(w, f"{FACTOR} + {channel}")
        w(f"{accumulator} = {self.floats.use(w, 'mul', accumulator, factor)};")
        if "bias" in self.channels:
            w(f"{accumulator} = {self.floats.use(w, 'add', accumulator, self._bias(w, channel))};")
        super().complete(w, accumulator, pointer, channel, count)
