"""Convolution in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import direct
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = c99.any_format


def lanes(site: Site[Conv2D]) -> Lanes:
    attributes = site.attributes
    return c99.lanes_for(site, attributes.clamp)


def demand(site: Site[Conv2D]) -> Demand:
    return direct.demand(site, lanes(site))


def emit(w: Writer, site: Site[Conv2D], names: Names) -> None:
    direct.emit(w, site, names, lanes(site))
