"""A dense layer of integers on the vectors of x86: one row split over many sums, several rows as a convolution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet, IntegerVectors
from nnbuild.isa.x86_rules import Rule, rule_of
from nnbuild.kernels.contract import Demand, Names, Variant, only_integer
from nnbuild.kernels.conv2d.windows import Windows, rows_of
from nnbuild.kernels.loops import padded, split
from nnbuild.ops.base import Clamp
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


def _clamp(site: Site[Dense]) -> Clamp:
    attributes = site.attributes
    return attributes.clamp


@lru_cache(maxsize=256)
def _rule(site: Site[Dense]) -> Rule | str:
    return rule_of(site, _clamp(site))


def _rows(site: Site[Dense]) -> int:
    return prod(site.shape()[:-1])


def _windows(site: Site[Dense]) -> Windows:
    inputs, outputs = site.constant("kernel").shape
    return rows_of(_rows(site), inputs, outputs)


@dataclass(frozen=True)
class Layer:
    """The kernel for one set of instructions."""

    set: IntegerSet

    def accepts(self, site: Site[Dense]) -> str | None:
        kernel = site.constants["kernel"]
        refused = only_integer(site)
        if refused:
            return refused
        if kernel.data.dtype != "int8":
            return "its weights have more than 8 bits"
        if quant_of(kernel).zero_point != 0:
            return "its weights have a zero point"
        rule = _rule(site)
        return rule if isinstance(rule, str) else self.set.refused(rule)

    def _lanes(self, site: Site[Dense]) -> IntegerVectors:
        rule = _rule(site)
        assert isinstance(rule, Rule)
        return IntegerVectors(site, _clamp(site), rule, self.set)

    def demand(self, site: Site[Dense]) -> Demand:
        lanes = self._lanes(site)
        return split.demand(site, lanes) if _rows(site) == 1 else padded.demand(site, _windows(site), lanes)

    def emit(self, w: Writer, site: Site[Dense], names: Names) -> None:
        lanes = self._lanes(site)
        if _rows(site) == 1:
            split.emit(w, site, names, lanes)
        else:
            padded.emit(w, site, names, _windows(site), lanes)


def _variant(chosen: IntegerSet) -> Variant:
    layer = Layer(chosen)
    return Variant(f"{chosen.name}_integers", frozenset({chosen.name}), layer.accepts, layer.demand, layer.emit)


VARIANTS = tuple(_variant(chosen) for chosen in SETS)
