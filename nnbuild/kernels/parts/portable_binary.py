"""Exact sums and products of bytes in portable C: a linear function of two inputs, or one long product.

Where scales are in the ratio of small integers, many sums are halves, and a linear function may not round all of them
right: then the operand of the smaller scale is scaled by a table, and their sum by a long product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names, all_int8, reason_of
from nnbuild.kernels.lanes.vector_binary import ProductRule, Scaled, product_rule, scaled_by
from nnbuild.kernels.loops.strided import Loops
from nnbuild.kernels.parts.integer_steps import centred, declare
from nnbuild.kernels.parts.residual import ADDS, Residual, sum_of
from nnbuild.model.graph import Array
from nnbuild.numeric.line_scale import HIGH
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT8, ints, requantize
from nnbuild.ops.binary import Binary, Formats, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

LONG_CYCLES = 12
"""Cycles of a 64-bit product and addition."""
HALF = Multiplier(1 << 30, 0)
"""The scale of an operand of the larger scale, to twice that scale."""


@dataclass(frozen=True)
class AlignedSum:
    """The sum or difference of operands in a common scale, as an output."""

    form: Formats
    sign: str
    output: Scaled

    @property
    def terms(self) -> Iterator[tuple[str, int, Multiplier]]:
        """The name, the zero point and the scale of each operand."""
        scales = self.form.sum_scales()
        return zip(("left", "right"), self.form.zeros[:2], (scales.first, scales.second), strict=True)

    def tables(self) -> dict[str, Array]:
        """By the table's name: all numbers of an operand in the common scale."""
        spare = self.form.sum_scales().left_shift
        numbers = {name: (ints(np.arange(INT8[0], INT8[1] + 1)) - zero) << spare for name, zero, _ in self.terms}
        scaled = {name: requantize(numbers[name], *scale) for name, _, scale in self.terms if scale != HALF}
        return {f"{name}_terms": values.astype(np.int32) for name, values in scaled.items()}


@lru_cache(maxsize=256)
def rule_of(site: Site[Binary]) -> Residual | ProductRule | AlignedSum | str:
    if site.attributes.function == "multiply":
        return product_rule(site)
    linear = sum_of(site)
    return linear if isinstance(linear, Residual) else _aligned(site)


def _aligned(site: Site[Binary]) -> AlignedSum | str:
    if site.attributes.function not in ADDS:
        return "it adds, subtracts and multiplies only"
    form = formats(site)
    farthest = 255 << form.sum_scales().left_shift
    output = scaled_by(form.sum_scales().output, form.zeros[2], (-farthest, farthest))
    return (
        AlignedSum(form, "+" if site.attributes.function == "add" else "-", output) if output else "its scale is large"
    )


def refused(site: Site[Binary]) -> str | None:
    return all_int8(site) or reason_of(rule_of(site))


def tables(site: Site[Binary]) -> dict[str, Array]:
    rule = rule_of(site)
    return rule.tables() if isinstance(rule, AlignedSum) else {}


def emit(w: Writer, site: Site[Binary], names: Names, walks: Loops) -> None:
    rule, (left, right) = rule_of(site), operands(names.inputs, names.packed)
    assert not isinstance(rule, str)

    def element(at: list[str]) -> None:
        places = f"{left}[{at[1]}]", f"{right}[{at[2]}]"
        if isinstance(rule, Residual):
            w.bill(2 * c99.MULTIPLY_ADD.cycles + 2)
            declare(w, "value", f"({rule.terms(*places)}) >> {rule.sum.shift}", "int32_t")
        elif isinstance(rule, AlignedSum):
            for (name, zero, _), place in zip(rule.terms, places, strict=True):
                declare(w, name, _term(w, names.packed.get(f"{name}_terms"), zero, place, rule))
            w.bill(1)
            declare(w, "product", f"left {rule.sign} right")
            declare(w, "value", _scaled(w, rule.output), "int32_t")
        else:
            for name, place, zero in zip("ab", places, rule.zeros, strict=True):
                centred(w, name, place, zero)
            w.bill(1)
            declare(w, "product", "a * b")
            declare(w, "value", _scaled(w, rule.output), "int32_t")
        c99.bound(w, bounds(site.attributes.clamp, site.outputs[0]), "value")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int8_t)value"))

    walks.nest(w, element)


def _term(w: Writer, table: str | None, zero: int, place: str, rule: AlignedSum) -> str:
    w.bill(3)
    if table:
        return f"{table}[{place} + 128]"
    return f"({c99.added(place, -zero)}) * {1 << (rule.form.sum_scales().left_shift - 1)}"


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
