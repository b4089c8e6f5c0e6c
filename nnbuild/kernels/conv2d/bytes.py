"""Convolution of int8 on Cortex-M3 and M0."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Variant
from nnbuild.kernels.loops import edges
from nnbuild.kernels.small_lanes import ByteLanes, ShortByteLanes, scaling_of, weights_of
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


def _accepts(site: Site[Conv2D]) -> str | None:
    if site.dtypes != {"int8"}:
        return f"it computes int8 only, not {', '.join(sorted(site.dtypes))}"
    found = scaling_of(site, weights_of(site))
    return found if isinstance(found, str) else None


def _zero(site: Site[Conv2D]) -> str:
    return str(quant_of(site.inputs[0]).zero_point)


def _variant(name: str, feature: str, lanes: type[ByteLanes], registers: int) -> Variant:
    def demand(site: Site[Conv2D]) -> Demand:
        weights = ShortByteLanes.stored(site.constant("kernel")) if lanes is ShortByteLanes else None
        return edges.demand(site, lanes(site), registers, weights, _zero(site))

    def emit(w: Writer, site: Site[Conv2D], names: Names) -> None:
        edges.emit(w, site, names, lanes(site), registers, _zero(site))

    return Variant(name, frozenset({feature}), _accepts, demand, emit)


VARIANTS = (_variant("bytes", "armv7m", ByteLanes, 14), _variant("bytes_short", "armv6m", ShortByteLanes, 10))
