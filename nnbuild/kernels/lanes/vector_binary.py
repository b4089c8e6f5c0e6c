"""Exact products of bytes in vectors, and the scaling of vectors of numbers by one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.numeric.line_scale import HIGH, Line, doubled_line, upward_line
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.requant import Layer
from nnbuild.numeric.requant_line import lines
from nnbuild.numeric.rounding import INT32, ints, wrap
from nnbuild.ops.binary import Binary, formats
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Scaled:
    """One scale for all lanes: the line from sums, to which `constant` has been added, to outputs.

    away: halves round away from zero, so sums are doubled and negative ones reduced by one.
    """

    line: Line
    away: bool
    constant: int = 0

    def apply(self, w: Writer, v: Vectors, total: str) -> None:
        """Turns the variable `total` into an output, not clamped yet."""
        if self.constant:
            w(f"{total} = {v.call(w, 'add', total, self.constant)};")
        value = v.call(w, "add", total, total) if self.away else total
        numbers = (value, v.call(w, "each", str(self.line.multiplier)))
        if v.apart:
            low, upper = (int(wrap(half, 32)) for half in (self.line.addend, self.line.addend >> HIGH))
            high = v.call(w, "scaled_apart", *numbers, low, upper)
        else:
            addend = v.call(w, "each_wide", f"INT64_C({self.line.addend})")
            high = v.call(w, "scaled", *numbers, addend, addend, of=(int(v.alternating),))
        shift = self.line.shift - HIGH
        if self.away and shift > 0:
            high = v.call(w, "add", high, v.call(w, "shift_right", total, of=(31,)))
        w(f"{total} = {v.call(w, 'shift_right', high, of=(shift,)) if shift > 0 else high};")


def scaled_by(scale: Multiplier, zero: int, sums: tuple[int, int], upward: bool = False) -> Scaled | None:
    """`rounding.requantize` plus the zero point, for sums in this range; `upward` where negative results are clamped to
    the zero point anyway."""
    if scale.shift > 0:
        return None
    line = upward_line(scale, zero)
    if upward and line.fits(sums):
        return Scaled(line, False)
    line, (low, high) = doubled_line(scale, zero), (2 * end for end in sums)
    fits = low >= INT32[0] and high <= INT32[1] and line.fits((low, high))
    return Scaled(line, True) if fits else None


def scaled_once_by(real: float, zero: int, bounds: tuple[int, int], sums: tuple[int, int]) -> Scaled | None:
    """The product with a number, rounded once, plus the zero point, for sums in this range."""
    low, high = (ints([end]) for end in sums)
    found = lines(Layer("once", np.array([real]), zero, bounds, low, high))
    number = found.numbers[0] if found is not None and not found.shifted else None
    return Scaled(Line(number.multiplier, number.addend, number.shift), False, -number.centre) if number else None


@dataclass(frozen=True)
class ProductRule:
    """The product of two operands less their zero points, as an output."""

    zeros: tuple[int, int]
    output: Scaled
    bounds: tuple[int, int]

    def join(self, w: Writer, v: Vectors, left: str, right: str, total: str) -> None:
        """Sets `total`, which may be an operand's variable, to the output, not clamped yet."""
        first, second = (
            v.call(w, "sub", name, zero) if zero else name for name, zero in zip((left, right), self.zeros, strict=True)
        )
        w(f"{total} = {v.call(w, 'mul', first, second)};")
        self.output.apply(w, v, total)


def product_rule(site: Site[Binary]) -> ProductRule | str:
    """The rule of a multiplication, or why there is none."""
    attributes = site.attributes
    if attributes.function != "multiply":
        return "it multiplies"
    form, limit, products = formats(site), bounds(attributes.clamp, site.outputs[0]), (-(255**2), 255**2)
    if form.once:
        output = scaled_once_by(form.real_product(), form.zeros[2], limit, products)
    else:
        output = scaled_by(form.product_scale(), form.zeros[2], products, upward=limit[0] >= form.zeros[2])
    return ProductRule(form.zeros[:2], output, limit) if output else "its output scale needs a shift to the left"
