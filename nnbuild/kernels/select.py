"""Selects one of two operands by a truth value, in any type."""

from __future__ import annotations

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.loops.strided import Loops, flat_constants, loops_over
from nnbuild.ops.select import Select, sides
from nnbuild.ops.site import Site

ROW = Row("{0} ? {1} : {2}", 4)


def _loops(site: Site[Select]) -> Loops:
    return loops_over(site, sides)


def _accepts(site: Site[Select]) -> str | None:
    kinds = {tensor.dtype for tensor in (*site.inputs[1:], *site.outputs)}
    return None if len(kinds) == 1 else f"its operands are of several types: {', '.join(sorted(kinds))}"


def _demand(site: Site[Select]) -> Demand:
    return Demand(extent=_loops(site).extent, packed=flat_constants(site))


def _emit(w: Writer, site: Site[Select], names: Names) -> None:
    given = sides(names.inputs, names.packed)

    def element(at: list[str]) -> None:
        w.bill(2 * c99.LOAD.cycles)
        values = [f"{name}[{place}]" for name, place in zip(given, at[1:], strict=True)]
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", w.use(ROW, *values)))

    _loops(site).nest(w, element)


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)
