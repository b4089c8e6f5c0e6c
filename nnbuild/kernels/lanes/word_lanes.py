"""Lanes for sums of 16-bit inputs in 32 bits, a channel a lane: single ones, for any core, and vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import only_int16, reason_of
from nnbuild.kernels.dsp.scaling import Scaling, scaling_by
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.loops.window import Weighted
from nnbuild.numeric.requant_product import LONG, Form
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site


@lru_cache(maxsize=256)
def _scaling_of(site: Site[Weighted]) -> Scaling | str:
    """One high product for every channel, or two, or the vendored function."""
    return scaling_by(site, lambda _: [Form(below=None), LONG], 30)


def refused(site: Site[Weighted]) -> str | None:
    return only_int16(site) or integer_layers.refused_weights(site) or reason_of(_scaling_of(site))


class WordLanes(ByteLanes):
    """int16 with 32-bit sums, one channel a lane."""

    input_type = "int16_t"
    output_type = "int16_t"

    def __init__(self, site: Site[Weighted]) -> None:
        scaling = _scaling_of(site)
        assert isinstance(scaling, Scaling)
        super().__init__(site, scaling)

    def write(self, w: Writer, pointer: str, value: str) -> None:
        w(w.use(c99.STORE, c99.at(pointer), f"(int16_t){value}"))


@dataclass(frozen=True, eq=False, kw_only=True)
class WordVectors(IntegerVectors):
    """The same in vectors, of widened inputs and weights. times: the lanes that share an input."""

    times: int

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self._sums(w, name, self.v.call(w, "widen", pointer, of=(self.lanes,)))

    def lane_inputs(self, w: Writer, name: str, pointer: str, count: int) -> None:
        if self.times == 1:
            value = self.v.call(w, "widen_words", pointer, of=(count,))
        elif count <= self.times:
            value = self.v.call(w, "each", f"*({pointer})")
        else:
            value = self.v.call(w, "widen_repeated_words", pointer, of=(self.times, count))
        self._sums(w, name, value)

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        self.combine(w, "add", accumulator, self.v.call(w, "mul", name, weights))

    def declare_constants(self, w: Writer) -> None:
        self.prepare(w, "0")


def word_vectors(v: Vectors, site: Site[DepthwiseConv2D]) -> WordVectors:
    return as_kind(WordVectors, integer_layers.lanes_of(v, site), times=site.constant("kernel").shape[3])


def refused_vectors(v: Vectors, site: Site[DepthwiseConv2D]) -> str | None:
    return only_int16(site) or integer_layers.refused(v, site)
