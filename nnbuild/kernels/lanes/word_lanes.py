"""Lanes for sums of 16-bit inputs in 32 bits, a channel a lane: single ones, for any core, and vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeVar

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.armv6m import SHORT
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Kernel, Nest, only_int16, reason_of, variant
from nnbuild.kernels.dsp.scaling import Scaling, scaling_by
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.loops.window import Weighted
from nnbuild.numeric.requant_product import LONG, Form
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

W = TypeVar("W", bound=Weighted)


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


class ShortWordLanes(WordLanes):
    """The same on Cortex-M0: loads of signed numbers take two instructions, and products overwrite a factor."""

    product_cycles, load_cycles, store_cycles = 2, 1.5, 17
    ops = SHORT
    long_wides = 1

    def high(self, w: Writer, value: str, multiplier: str) -> str:
        """The upper half of a 16-bit rule's multipliers is all of them."""
        if (self.channels["multiplier"] & 0xFFFF).any():
            w.bill(12)
            return super().high(w, value, multiplier)
        return self.ops.call(w, "high_by_upper", value, multiplier)


class ShortSlidingLanes(ShortWordLanes):
    """For tiles with more values than registers."""

    product_cycles, store_cycles = 4, 13


def kernels(
    name: str, nest: Callable[[type[WordLanes], Site[W]], Nest], lanes: type[WordLanes] = ShortWordLanes
) -> tuple[Kernel[W], ...]:
    """A nest in portable C, and with the prices of Cortex-M0."""
    plain = variant(name, frozenset(), refused, partial(nest, WordLanes))
    short = variant(f"{name}_short", frozenset({"armv6m"}), refused, partial(nest, lanes))
    return replace(plain, unless="armv6m"), short


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
