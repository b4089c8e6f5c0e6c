"""A dense layer of floats on Cortex-M4F and M7."""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.arm_fpu import FEATURES, REGISTERS, FpuLanes
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.loops import rows
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

needs = FEATURES
accepts = only_float
ALONE = 12
"""Channels of a tile of one row: each sum has a weight of its own."""


def _lanes(site: Site[Dense]) -> FpuLanes:
    attributes = site.attributes
    lanes = FpuLanes(site, attributes.clamp)
    if prod(site.shape()[:-1]) == 1:
        lanes.vectors = min(ALONE, site.output_shape()[-1])
    else:
        lanes.pixels = (REGISTERS - lanes.vectors - 2) // lanes.vectors
    return lanes


def demand(site: Site[Dense]) -> Demand:
    return rows.demand(site, _lanes(site))


def emit(w: Writer, site: Site[Dense], names: Names) -> None:
    rows.emit(w, site, names, _lanes(site))
