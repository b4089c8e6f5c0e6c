"""A function of every element, in vectors of floats."""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import vector_loop
from nnbuild.kernels.activation import scalar
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.strided import Walk, contiguous
from nnbuild.kernels.vector_functions import missing, spell
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site


def _accepts(site: Site[Activation]) -> str | None:
    return only_float(site) or missing(site.attributes.function)


def _variant(floats: Vectors) -> Variant:
    def demand(site: Site[Activation]) -> Demand:
        return Demand(extent=-(-prod(site.shape()) // floats.lanes), overlaps=scalar.demand(site).overlaps)

    def emit(w: Writer, site: Site[Activation], names: Names) -> None:
        attributes = site.attributes

        def element(at: list[str], count: int) -> None:
            floats.declare(w, "x", floats.load(w, f"{names.inputs[0]} + {at[0]}", count))
            value = spell(w, floats, (attributes.function, attributes.parameters), "x")
            floats.store(w, f"{names.outputs[0]} + {at[0]}", value, count)

        vector_loop.nest(w, site.shape(), [Walk(contiguous(site.shape()))], floats, element)

    return Variant(floats.name, frozenset({floats.name}), _accepts, demand, emit)


VARIANTS = tuple(_variant(floats) for floats in SETS)
