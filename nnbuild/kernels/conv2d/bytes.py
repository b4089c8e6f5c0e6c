"""Convolution of int8 on Cortex-M3 and M0."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Variant
from nnbuild.kernels.loops import edges
from nnbuild.kernels.small_lanes import ByteLanes, ShortByteLanes
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


def _accepts(site: Site) -> str | None:
    return None if site.dtypes == {"int8"} else f"it computes int8 only, not {', '.join(sorted(site.dtypes))}"


def _zero(site: Site) -> str:
    return str(quant_of(site.inputs[0]).zero_point)


def _variant(name: str, feature: str, lanes: type[ByteLanes], registers: int) -> Variant:
    def demand(site: Site) -> Demand:
        weights = ShortByteLanes.stored(site.constant("kernel")) if lanes is ShortByteLanes else None
        return edges.demand(site, lanes(site), registers, weights, _zero(site))

    def emit(w: Writer, site: Site, names: Names) -> None:
        edges.emit(w, site, names, lanes(site), registers, _zero(site))

    return Variant(name, frozenset({feature}), _accepts, demand, emit)


VARIANTS = (_variant("bytes", "armv7m", ByteLanes, 14), _variant("bytes_short", "armv6m", ShortByteLanes, 10))
