"""A function of every element, in portable C."""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.functions import spell
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[Activation]) -> Demand:
    return Demand(extent=prod(site.shape()), overlaps=IN_PLACE, rows=True)


def emit(w: Writer, site: Site[Activation], names: Names) -> None:
    attributes = site.attributes
    with w.loop("i", "end", start="begin", trips=prod(site.shape())):
        w(w.use(c99.LOAD, "x", f"{names.inputs[0]}[i]"))
        w(w.use(c99.STORE, f"{names.outputs[0]}[i]", spell(w, attributes.function, attributes.parameters, "x")))
