"""Convolution in vectors of floats: a kernel for each width of x86, and for each number of inputs a lane sums up."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops import tiled
from nnbuild.kernels.loops.direct import geometry
from nnbuild.kernels.loops.tiling import best_vectors
from nnbuild.kernels.vector_tail import KINDS, refusal, tail_of
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site


def _layout(site: Site[Conv2D], floats: Vectors, depth: int) -> tiled.Layout:
    attributes = site.attributes
    registers = floats.registers - floats.temporaries
    tail = tail_of(site)
    lanes = VectorLanes(site, floats, attributes.clamp, depth, tail.finish)
    if depth > 1 and site.output_shape()[2] <= lanes.lanes and attributes.groups == 1:
        lanes.join(site.output_shape()[2])
    draft = tiled.layout(site, lanes, registers, tail.pool)
    vectors = -(-geometry(site, lanes).filters // attributes.groups // lanes.lanes)
    lanes.vectors = best_vectors(draft.places, [vectors], draft.steps, registers, draft.area)
    return tiled.layout(site, lanes, registers, tail.pool)


def _variant(floats: Vectors, depth: int) -> Variant:
    def accepts(site: Site[Conv2D]) -> str | None:
        reason = only_float(site) or refusal(site)
        if reason is None and depth > 1 and site.output_shape()[2] > floats.lanes:
            reason = "it has channels enough to fill the lanes"
        return reason

    def demand(site: Site[Conv2D]) -> Demand:
        return tiled.demand(site, _layout(site, floats, depth))

    def emit(w: Writer, site: Site[Conv2D], names: Names) -> None:
        tiled.emit(w, names, _layout(site, floats, depth))

    name = floats.name if depth == 1 else f"{floats.name}_by_{depth}"
    return Variant(name, frozenset({floats.name}), accepts, demand, emit, KINDS)


VARIANTS = tuple(_variant(floats, depth) for floats in SETS for depth in floats.repeats if depth < floats.lanes)
