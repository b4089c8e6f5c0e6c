"""Exact functions of two bytes in portable C: a linear function of both, or one long product.

Others first bring both operands to a common scale, by a table of the one with the smaller scale, and then add,
subtract, compare or square the difference. Sums are of this kind where scales are in the ratio of small integers: many
of them are halves, which no linear function may round right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names, all_int8, reason_of
from nnbuild.kernels.lanes.vector_binary import ProductRule, Scaled, product_rule, scaled_by
from nnbuild.kernels.loops.strided import operand_loops
from nnbuild.kernels.parts.integer_steps import centred, computed, declare
from nnbuild.kernels.parts.residual import Residual, sum_of
from nnbuild.model.graph import Array
from nnbuild.numeric.line_scale import HIGH
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT8, INT32, ints, requantize
from nnbuild.ops.binary import Binary, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

LONG_CYCLES = 7
"""Cycles of a 64-bit product and addition."""
JOINS = {
    "add": "left + right",
    "subtract": "left - right",
    "squared_difference": "(left - right) * (left - right)",
    "maximum": "(left > right ? left : right)",
    "minimum": "(left < right ? left : right)",
}


@dataclass(frozen=True)
class Term:
    """An operand less its zero point, shifted to the left and scaled, plus an offset."""

    zero: int
    scale: Multiplier
    spare: int = 0
    offset: int = 0

    @property
    def factor(self) -> int | None:
        """The whole number that multiplies the operand, if that is all."""
        power = self.spare + self.scale.shift - 1
        whole = self.scale.multiplier == 1 << 30 and power >= 0 and (power == 0 or self.offset == 0)
        return 1 << power if whole else None

    def table(self) -> Array:
        """Of all bytes."""
        numbers = (ints(np.arange(INT8[0], INT8[1] + 1)) - self.zero) << self.spare
        return (requantize(numbers, *self.scale) + self.offset).astype(np.int32)

    def value(self, w: Writer, table: str | None, place: str) -> str:
        if table:
            w.bill(3)
            return f"{table}[{place} + 128]"
        if self.factor == 1:
            w.bill(self.offset != self.zero)
            return f"{place} + {self.offset - self.zero}"
        w.bill(2)
        return f"({place} - {self.zero}) * {self.factor}"


@dataclass(frozen=True)
class Aligned:
    """Operands in a common scale, joined; the output's scale where that is another one."""

    left: Term
    right: Term
    join: str
    output: Scaled | None

    @property
    def terms(self) -> dict[str, Term]:
        return {"left": self.left, "right": self.right}

    @property
    def as_read(self) -> bool:
        """Whether the result is one of the operands."""
        unmoved = all(term.factor == 1 and term.offset == term.zero for term in self.terms.values())
        return unmoved and self.output is None and self.join in (JOINS["maximum"], JOINS["minimum"])

    def tables(self) -> dict[str, Array]:
        return {f"{name}_terms": term.table() for name, term in self.terms.items() if term.factor is None}


@lru_cache(maxsize=256)
def rule_of(site: Site[Binary]) -> Residual | ProductRule | Aligned | str:
    function, form = site.attributes.function, formats(site)
    if function == "multiply":
        return product_rule(site)
    if isinstance(linear := sum_of(site), Residual):
        return linear
    if function not in JOINS:
        return "it does not divide"
    if function in ("maximum", "minimum"):
        left, right = (
            Term(zero, scale, offset=form.zeros[2])
            for zero, scale in zip(form.zeros[:2], form.choice_scales(), strict=True)
        )
        return Aligned(left, right, JOINS[function], None)
    scales = form.square_scales() if function == "squared_difference" else form.sum_scales()
    left, right = (Term(zero, by, scales.left_shift) for zero, by in zip(form.zeros, scales[1:3], strict=False))
    farthest = 255 << scales.left_shift
    numbers = (0, farthest**2) if function == "squared_difference" else (-farthest, farthest)
    output = scaled_by(scales.output, form.zeros[2], numbers)
    return Aligned(left, right, JOINS[function], output) if output else "its output's scale is too small"


def refused(site: Site[Binary]) -> str | None:
    return all_int8(site) or reason_of(rule_of(site))


def tables(site: Site[Binary]) -> dict[str, Array]:
    rule = rule_of(site)
    return rule.tables() if isinstance(rule, Aligned) else {}


def emit(w: Writer, site: Site[Binary], names: Names) -> None:
    rule, (left, right) = rule_of(site), operands(names.inputs, names.packed)
    assert not isinstance(rule, str)

    def element(at: list[str]) -> None:
        places = f"{left}[{at[1]}]", f"{right}[{at[2]}]"
        if isinstance(rule, Residual):
            w.bill(2 * c99.MULTIPLY_ADD.cycles + 2)
            declare(w, "value", f"({rule.terms(*places)}) >> {rule.sum.shift}", "int32_t")
        elif isinstance(rule, Aligned):
            for (name, term), place in zip(rule.terms.items(), places, strict=True):
                declare(w, name, term.value(w, names.packed.get(f"{name}_terms"), place))
            w.bill(3)
            computed(w, "product" if rule.output else "value", rule.join, "const int32_t" if rule.output else "int32_t")
            if rule.output:
                computed(w, "value", _scaled(w, rule.output), "int32_t")
        else:
            for name, place, zero in zip("ab", places, rule.zeros, strict=True):
                centred(w, name, place, zero)
            w.bill(1)
            computed(w, "product", "a * b")
            computed(w, "value", _scaled(w, rule.output), "int32_t")
        as_read = isinstance(rule, Aligned) and rule.as_read
        c99.narrow(w, bounds(site.attributes.clamp, site.outputs[0]), "value", INT8 if as_read else INT32)
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int8_t)value"))

    operand_loops(site).nest(w, element)


def _scaled(w: Writer, scale: Scaled) -> str:
    """The variable `product` as an output, not clamped yet; see `lanes.vector_binary.Scaled`."""
    line, shift = scale.line, scale.line.shift - HIGH
    w.bill(LONG_CYCLES, wides=3 / 4)
    long = f"(int64_t)product * {line.multiplier * (2 if scale.away else 1)} + INT64_C({line.addend})"
    if scale.away and shift > 0:
        w.bill(2)
        computed(w, "high", f"(int32_t)(({long}) >> {HIGH}) + (product >> 31)")
        return f"high >> {shift}"
    return f"(int32_t)(({long}) >> {line.shift})"
