"""Arithmetic of whole numbers; sums are unsigned, as signed overflow is undefined in C."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.compare import demand_of
from nnbuild.kernels.contract import PORTABLE, Kernel, Names
from nnbuild.kernels.loops.strided import operand_loops
from nnbuild.ops.binary import operands
from nnbuild.ops.site import Site
from nnbuild.ops.whole import Whole

_REST = "({0} % {1} != 0 && ({0} < 0) != ({1} < 0))"
_DIVIDES = "{1} == 0 ? 0 : {1} == -1 ? "
ROWS = {
    "add": Row("(int32_t)((uint32_t){0} + (uint32_t){1})", 1),
    "subtract": Row("(int32_t)((uint32_t){0} - (uint32_t){1})", 1),
    "multiply": Row("(int32_t)((uint32_t){0} * (uint32_t){1})", 1),
    "divide": Row(_DIVIDES + "(int32_t)(0u - (uint32_t){0}) : {0} / {1}", 15),
    "floor_divide": Row(_DIVIDES + "(int32_t)(0u - (uint32_t){0}) : {0} / {1} - " + _REST, 30),
    "floor_mod": Row(_DIVIDES + "0 : {0} % {1} + (" + _REST + " ? {1} : 0)", 30),
    "maximum": Row("{0} > {1} ? {0} : {1}", 3),
    "minimum": Row("{0} < {1} ? {0} : {1}", 3),
    "and": Row("{0} & {1}", 1),
    "or": Row("{0} | {1}", 1),
    "xor": Row("{0} ^ {1}", 1),
    "right_shift": Row("{0} >> ({1} < 0 ? 0 : {1} < 31 ? {1} : 31)", 5),
}


def _accepts(site: Site[Whole]) -> str | None:
    return None if len(site.dtypes) == 1 else f"it computes one type, not {', '.join(sorted(site.dtypes))}"


def _emit(w: Writer, site: Site[Whole], names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    kind = C_TYPES[site.outputs[0].dtype]

    def element(at: list[str]) -> None:
        w(w.use(c99.LOAD_AS, "const int32_t", "a", f"{left}[{at[1]}]"))
        w(w.use(c99.LOAD_AS, "const int32_t", "b", f"{right}[{at[2]}]"))
        value = w.use(ROWS[site.attributes.function], "a", "b")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", f"({kind})({value})"))

    operand_loops(site).nest(w, element)


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, demand_of, _emit),)
