"""Two operands, element by element with broadcasting, in vectors of floats."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import vector_loop
from nnbuild.kernels.binary import scalar
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.vector_tail import OPERATIONS
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.site import Site


def _accepts(site: Site[Binary]) -> str | None:
    if site.attributes.function not in (*OPERATIONS, "squared_difference"):
        return "it has no such operation"
    return only_float(site) or vector_loop.refusal(site.output_shape(), scalar.operand_walks(site))


def _emit(w: Writer, site: Site[Binary], names: Names, floats: Vectors) -> None:
    walks = scalar.operand_walks(site)
    once = vector_loop.repeated(site.output_shape(), walks)
    attributes, pointers = site.attributes, operands(names.inputs, names.packed)

    def element(at: list[str], count: int) -> None:
        for name, pointer, place, single in zip(("a", "b"), pointers, at[1:], once[1:], strict=True):
            address = pointer if place == "0" else f"{pointer} + {place}"
            value = floats.broadcast(w, address, 1) if single else floats.load(w, address, count)
            floats.declare(w, name, value)
        if attributes.function == "squared_difference":
            w(f"a = {floats.use(w, 'sub', 'a', 'b')};")
            w(f"a = {floats.use(w, 'mul', 'a', 'a')};")
        else:
            w(f"a = {floats.use(w, OPERATIONS[attributes.function], 'a', 'b')};")
        floats.bound(w, attributes.clamp, "a")
        floats.store(w, f"{names.outputs[0]} + {at[0]}", "a", count)

    vector_loop.nest(w, site.output_shape(), walks, floats, element)


def _variant(floats: Vectors) -> Variant:
    def demand(site: Site[Binary]) -> Demand:
        plain = scalar.demand(site)
        pieces = vector_loop.extent(site.output_shape(), scalar.operand_walks(site), floats)
        return Demand(extent=pieces, packed=plain.packed, overlaps=plain.overlaps)

    def emit(w: Writer, site: Site[Binary], names: Names) -> None:
        _emit(w, site, names, floats)

    return Variant(floats.name, frozenset({floats.name}), _accepts, demand, emit)


VARIANTS = tuple(_variant(floats) for floats in SETS)
