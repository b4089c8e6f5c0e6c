"""A part of a tensor, in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.moves import carry, same_type
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.strided import Walk, contiguous, extent
from nnbuild.model.graph import Shape
from nnbuild.ops.site import Site
from nnbuild.ops.slice import Slice

needs: frozenset[str] = frozenset()
accepts = same_type


def _loops(site: Site[Slice]) -> tuple[Shape, list[Walk]]:
    attributes = site.attributes
    strides = contiguous(site.shape())
    steps = tuple(stride * step for stride, step in zip(strides, attributes.steps, strict=True))
    start = sum(stride * begin for stride, begin in zip(strides, attributes.begins, strict=True))
    return site.output_shape(), [Walk(contiguous(site.output_shape())), Walk(steps, start)]


def demand(site: Site[Slice]) -> Demand:
    return Demand(extent=extent(*_loops(site)), overlaps=IN_PLACE if _forward(site) else ())


def emit(w: Writer, site: Site[Slice], names: Names) -> None:
    carry(w, names, *_loops(site))


def _forward(site: Site[Slice]) -> bool:
    attributes = site.attributes
    return all(step > 0 for step in attributes.steps)
