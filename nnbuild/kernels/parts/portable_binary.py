"""Exact sums and products of bytes in portable C: a linear function of two inputs, or one long product."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names, all_int8, reason_of
from nnbuild.kernels.lanes.vector_binary import ProductRule, Scaled, product_rule
from nnbuild.kernels.loops.strided import Loops
from nnbuild.kernels.parts.integer_steps import centred, declare
from nnbuild.kernels.parts.residual import Residual, sum_of
from nnbuild.numeric.line_scale import HIGH
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

LONG_CYCLES = 12
"""Cycles of a 64-bit product and addition."""


def _rule(site: Site[Binary]) -> Residual | ProductRule | str:
    return product_rule(site) if site.attributes.function == "multiply" else sum_of(site)


def refused(site: Site[Binary]) -> str | None:
    return all_int8(site) or reason_of(_rule(site))


def emit(w: Writer, site: Site[Binary], names: Names, walks: Loops) -> None:
    rule, (left, right) = _rule(site), operands(names.inputs, names.packed)
    assert not isinstance(rule, str)

    def element(at: list[str]) -> None:
        places = f"{left}[{at[1]}]", f"{right}[{at[2]}]"
        if isinstance(rule, Residual):
            w.bill(2 * c99.MULTIPLY_ADD.cycles + 2)
            declare(w, "value", f"({rule.terms(*places)}) >> {rule.sum.shift}", "int32_t")
        else:
            for name, place, zero in zip("ab", places, rule.zeros, strict=True):
                centred(w, name, place, zero)
            w.bill(1)
            declare(w, "product", "a * b")
            declare(w, "value", _scaled(w, rule.output), "int32_t")
        c99.bound(w, bounds(site.attributes.clamp, site.outputs[0]), "value")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int8_t)value"))

    walks.nest(w, element)


def _scaled(w: Writer, scale: Scaled) -> str:
    """The variable `product` as an output, not clamped yet; see `lanes.vector_binary.Scaled`."""
    line, shift = scale.line, scale.line.shift - HIGH
    w.bill(LONG_CYCLES)
    long = f"(int64_t)product * {line.multiplier * (2 if scale.away else 1)} + INT64_C({line.addend})"
    if scale.away and shift > 0:
        w.bill(2)
        declare(w, "high", f"(int32_t)(({long}) >> {HIGH}) + (product >> 31)")
        return f"high >> {shift}"
    return f"(int32_t)(({long}) >> {line.shift})"
