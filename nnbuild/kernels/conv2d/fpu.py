"""Convolution of floats on Cortex-M4F and M7."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.arm_fpu import FEATURES, REGISTERS, FpuLanes
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.loops import edges
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

needs = FEATURES
accepts = only_float


def _lanes(site: Site[Conv2D]) -> FpuLanes:
    attributes = site.attributes
    return FpuLanes(site, attributes.clamp)


def demand(site: Site[Conv2D]) -> Demand:
    return edges.demand(site, _lanes(site), REGISTERS)


def emit(w: Writer, site: Site[Conv2D], names: Names) -> None:
    edges.emit(w, site, names, _lanes(site), REGISTERS)
