"""Two operands, element by element with broadcasting, in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, Overlap, only_float
from nnbuild.kernels.strided import Walk, broadcast, contiguous, extent, nest
from nnbuild.model.graph import Shape
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float

ROWS = {
    "add": Row("{0} + {1}", 1),
    "subtract": Row("{0} - {1}", 1),
    "divide": Row("{0} / {1}", 14),
    "maximum": Row("{0} > {1} ? {0} : {1}", 3),
    "minimum": Row("{0} < {1} ? {0} : {1}", 3),
}
FACTORS = {"multiply": (("a", "b"), 1), "squared_difference": (("a - b", "a - b"), 3)}
"""Those that are a product: of what, and its price."""


def _shapes(site: Site[Binary]) -> tuple[Shape, Shape]:
    constants = {role: constant.data.shape for role, constant in site.constants.items()}
    return operands([site.shape(i) for i in range(len(site.inputs))], constants)


def operand_walks(site: Site[Binary]) -> list[Walk]:
    out = site.output_shape()
    left, right = _shapes(site)
    return [Walk(contiguous(out)), Walk(broadcast(left, out)), Walk(broadcast(right, out))]


def demand(site: Site[Binary]) -> Demand:
    packed = {role: constant.data.reshape(-1) for role, constant in site.constants.items()}
    whole = tuple(Overlap(input=i) for i in range(len(site.inputs)) if site.shape(i) == site.output_shape())
    return Demand(
        extent=extent(site.output_shape(), operand_walks(site)), packed=packed, overlaps=whole, rows=_in_rows(site)
    )


def _in_rows(site: Site[Binary]) -> bool:
    """An operand of one row for all rows is no row by row operand."""
    return all(site.shape(i)[:1] == site.output_shape()[:1] for i in range(len(site.inputs)))


def _spelt(w: Writer, function: str) -> str:
    """The function of `a` and `b`."""
    if function not in FACTORS:
        return w.use(ROWS[function], "a", "b")
    factors, cycles = FACTORS[function]
    w.bill(cycles)
    return c99.product(w, *factors)


def emit(w: Writer, site: Site[Binary], names: Names) -> None:
    attributes = site.attributes
    left, right = operands(names.inputs, names.packed)

    def element(at: list[str]) -> None:
        w(w.use(c99.LOAD, "a", f"{left}[{at[1]}]"))
        w(w.use(c99.LOAD, "b", f"{right}[{at[2]}]"))
        w(w.use(c99.LOAD_MUTABLE, "value", _spelt(w, attributes.function)))
        c99.clamp(w, attributes.clamp, "value")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "value"))

    nest(w, site.output_shape(), operand_walks(site), element)
