"""Comparisons: floats and whole numbers directly, quantized ones with spare bits."""

from __future__ import annotations

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.loops.strided import flat_constants, operand_loops
from nnbuild.kernels.parts.integer_steps import centred, declare, requantized
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import operands
from nnbuild.ops.compare import SPARE, Compare
from nnbuild.ops.site import Site

SIGNS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
ROW = Row("(int8_t)({0} {1} {2})", 3)


def demand_of(site: Site[Attributes]) -> Demand:
    return Demand(extent=operand_loops(site).extent, packed=flat_constants(site))


def _accepts(site: Site[Compare]) -> str | None:
    kinds = {tensor.dtype for tensor in site.inputs}
    return None if len(kinds) == 1 else f"it compares one type, not {', '.join(sorted(kinds))}"


def _emit(w: Writer, site: Site[Compare], names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    sign, scales, zeros = SIGNS[site.attributes.function], site.attributes.scales(site), (0, 0)
    if scales is not None:
        zeros = site.attributes.zeros(site)

    def element(at: list[str]) -> None:
        w.bill(2 * c99.LOAD.cycles)
        sides = [f"{left}[{at[1]}]", f"{right}[{at[2]}]"]
        if scales is not None:
            for name, side, zero, scale in zip("ab", sides, zeros, scales, strict=True):
                centred(w, name, side, zero)
                declare(w, f"{name}_scaled", requantized(w, f"{name} * {1 << SPARE}", scale))
            sides = ["a_scaled", "b_scaled"]
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", w.use(ROW, sides[0], sign, sides[1])))

    operand_loops(site).nest(w, element)


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, demand_of, _emit),)
