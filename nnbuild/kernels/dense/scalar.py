"""A dense layer in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import rows
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = c99.any_format


def lanes(site: Site[Dense]) -> Lanes:
    attributes = site.attributes
    return c99.lanes_for(site, attributes.clamp)


def demand(site: Site[Dense]) -> Demand:
    return rows.demand(site, lanes(site))


def emit(w: Writer, site: Site[Dense], names: Names) -> None:
    rows.emit(w, site, names, lanes(site))
