"""Depthwise convolution of integers on the vectors of x86."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet, IntegerVectors
from nnbuild.isa.x86_rules import Rule, rule_of
from nnbuild.kernels.contract import Demand, Names, Variant, only_integer
from nnbuild.kernels.conv2d.windows import Windows
from nnbuild.kernels.loops import interleaved
from nnbuild.kernels.loops.interleaved import Layout
from nnbuild.ops.base import Clamp
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

LONGEST_PERIOD = 1024
"""Outputs with constants of their own, where channels and vectors do not go into each other."""


def _clamp(site: Site[DepthwiseConv2D]) -> Clamp:
    return site.attributes.clamp


@lru_cache(maxsize=256)
def _rule(site: Site[DepthwiseConv2D]) -> Rule | str:
    return rule_of(site, _clamp(site))


def _windows(site: Site[DepthwiseConv2D]) -> Windows:
    attributes = site.attributes
    (height, width, channels), (rows, columns, _) = site.shape(), site.output_shape()
    kernel, top, left = site.constant("kernel").shape[:2], attributes.padding[0][0], attributes.padding[1][0]
    strides, dilation = attributes.strides, attributes.dilation
    single = (1, 1)
    return Windows(height, width, channels, kernel, strides, dilation, top, left, 1, channels, rows, columns, single)


@dataclass(frozen=True)
class Depthwise:
    """The kernel for one set of instructions."""

    set: IntegerSet

    def accepts(self, site: Site[DepthwiseConv2D]) -> str | None:
        refused = only_integer(site)
        if refused:
            return refused
        if site.constant("kernel").dtype != "int8":
            return "its weights have more than 8 bits"
        if site.constant("kernel").shape[3] != 1:
            return "it makes one output channel of each"
        rule = _rule(site)
        if isinstance(rule, str):
            return rule
        layout = self._layout(site)
        if layout.period > max(LONGEST_PERIOD, layout.windows.channels):
            return "its channels do not fill its vectors"
        return self.set.refused(rule)

    def _layout(self, site: Site[DepthwiseConv2D]) -> Layout:
        rule = _rule(site)
        assert isinstance(rule, Rule)
        return Layout(_windows(site), IntegerVectors(site, _clamp(site), rule, self.set))

    def demand(self, site: Site[DepthwiseConv2D]) -> Demand:
        return interleaved.demand(site, self._layout(site))

    def emit(self, w: Writer, site: Site[DepthwiseConv2D], names: Names) -> None:
        interleaved.emit(w, site, names, self._layout(site))


def _variant(chosen: IntegerSet) -> Variant:
    kernel = Depthwise(chosen)
    return Variant(f"{chosen.name}_integers", frozenset({chosen.name}), kernel.accepts, kernel.demand, kernel.emit)


VARIANTS = tuple(_variant(chosen) for chosen in SETS)
