"""The axes in another order, in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.moves import carry, same_type
from nnbuild.kernels.strided import Walk, contiguous, extent
from nnbuild.model.graph import Shape
from nnbuild.ops.site import Site
from nnbuild.ops.transpose import Transpose

needs: frozenset[str] = frozenset()
accepts = same_type


def _loops(site: Site[Transpose]) -> tuple[Shape, list[Walk]]:
    attributes = site.attributes
    strides = contiguous(site.shape())
    return site.output_shape(), [
        Walk(contiguous(site.output_shape())),
        Walk(tuple(strides[axis] for axis in attributes.order)),
    ]


def demand(site: Site[Transpose]) -> Demand:
    return Demand(extent=extent(*_loops(site)))


def emit(w: Writer, site: Site[Transpose], names: Names) -> None:
    carry(w, names, *_loops(site))
