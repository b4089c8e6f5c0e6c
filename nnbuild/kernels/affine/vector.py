"""A factor and a summand a channel, in vectors of floats."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import vector_loop
from nnbuild.kernels.affine import scalar
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.ops.affine import Affine
from nnbuild.ops.site import Site


def _accepts(site: Site[Affine]) -> str | None:
    return only_float(site) or vector_loop.refusal(site.shape(), scalar.axis_walks(site))


def _emit(w: Writer, site: Site[Affine], names: Names, floats: Vectors) -> None:
    attributes, walks = site.attributes, scalar.axis_walks(site)
    single = vector_loop.repeated(site.shape(), walks)[1]

    def element(at: list[str], count: int) -> None:
        floats.declare(w, "value", floats.load(w, f"{names.inputs[0]} + {at[0]}", count))
        for role in ("scale", "shift"):
            address = f"{names.packed[role]} + {at[1]}"
            floats.declare(w, role, floats.broadcast(w, address, 1) if single else floats.load(w, address, count))
        w(f"value = {floats.use(w, 'add', floats.use(w, 'mul', 'value', 'scale'), 'shift')};")
        floats.bound(w, attributes.clamp, "value")
        floats.store(w, f"{names.outputs[0]} + {at[0]}", "value", count)

    vector_loop.nest(w, site.shape(), walks, floats, element)


def _variant(floats: Vectors) -> Variant:
    def demand(site: Site[Affine]) -> Demand:
        plain = scalar.demand(site)
        pieces = vector_loop.extent(site.shape(), scalar.axis_walks(site), floats)
        return Demand(extent=pieces, packed=plain.packed, overlaps=plain.overlaps)

    def emit(w: Writer, site: Site[Affine], names: Names) -> None:
        _emit(w, site, names, floats)

    return Variant(floats.name, frozenset({floats.name}), _accepts, demand, emit)


VARIANTS = tuple(_variant(floats) for floats in SETS)
