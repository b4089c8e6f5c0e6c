"""Convolution in portable C."""

from __future__ import annotations

from nnbuild.isa import c99
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.conv2d import skeleton
from nnbuild.kernels.site import Demand, Names, Site, only_float
from nnbuild.ops.conv2d import Conv2D
from nnbuild.writer import Writer

needs: frozenset[str] = frozenset()
accepts = only_float


def lanes(site: Site) -> Lanes:
    attributes = site.op.attributes
    assert isinstance(attributes, Conv2D)
    return c99.FloatLanes(attributes.clamp)


def demand(site: Site) -> Demand:
    return skeleton.demand(site, lanes(site))


def emit(w: Writer, site: Site, names: Names) -> None:
    skeleton.emit(w, site, names, lanes(site))
