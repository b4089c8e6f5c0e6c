"""Every index several times over, in portable C: each axis becomes two loops, index and repetition."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.moves import carry, same_type
from nnbuild.kernels.strided import Walk, contiguous, extent
from nnbuild.model.graph import Shape
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = same_type


def _loops(site: Site[Repeat]) -> tuple[Shape, list[Walk]]:
    attributes = site.attributes
    out, own = contiguous(site.output_shape()), contiguous(site.shape())
    shape: list[int] = []
    to: list[int] = []
    source: list[int] = []
    for size, times, stride, step in zip(site.shape(), attributes.times, out, own, strict=True):
        shape += [size, times]
        to += [stride * times, stride]
        source += [step, 0]
    return tuple(shape), [Walk(tuple(to)), Walk(tuple(source))]


def demand(site: Site[Repeat]) -> Demand:
    return Demand(extent=extent(*_loops(site)))


def emit(w: Writer, site: Site[Repeat], names: Names) -> None:
    carry(w, names, *_loops(site))
