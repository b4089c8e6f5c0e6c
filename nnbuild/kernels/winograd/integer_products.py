"""The products of an exact Winograd convolution: lanes for 16-bit numbers, modulo 2**32."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_lanes import SCALARS
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors


class ModularProducts(Lanes):
    """Sums of products of 16-bit numbers; loads several inputs at once where a vector's lanes can be selected."""

    input_type = weight_type = "int16_t"
    output_type = "int32_t"
    depth = 1

    def __init__(self, v: Vectors, vectors: int = 1) -> None:
        self.by_lane = "h_mac_of" in v.spellings
        loaded = 2 * v.lanes if self.by_lane else SCALARS
        self.v, self.lanes, self.loaded, self.vectors, self.channels = v, v.lanes, loaded, vectors, {}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        self.v.let(w, "sums", accumulator, self.v.call(w, "each", "0"), "")

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "halves", name, self.v.call(w, "h_load", pointer))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        if self.by_lane:
            self.v.let(w, "words", name, self.v.call(w, "w_load", pointer))
        else:
            w(f"const int16_t *{name} = {pointer};")

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        self.multiply_by(w, accumulator, name, 0, weights)

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        if self.by_lane:
            value = self.v.call(w, "h_mac_of", accumulator, name, weights, of=(step,))
        else:
            value = self.v.call(w, "h_mac", accumulator, f"{name}[{step}]", weights)
        w(f"{accumulator} = {value};")

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w(f"{self.v.call(w, 'store', pointer, accumulator)};")
