"""Exact elementwise binary operations on bytes in vectors: both operands are brought to one scale in 32 bits, and
the result is scaled like a layer's sums.

A byte has 256 values, so aligning it takes a product with the integer part of its factor and one with the fraction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.numeric.line_scale import HIGH, SPLIT_BITS, Line, Split, doubled_line, fitted_split, upward_line
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT32, wrap
from nnbuild.ops.binary import Binary, formats
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

SIGNS = {"add": (1, "add"), "subtract": (-1, "sub")}
LARGEST_SUM = 2**29
"""The limit that the spare bits of TFLite's sums leave."""


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
            w(f"{total} = {v.call(w, 'add', total, _each(w, v, self.constant))};")
        value = v.call(w, "add", total, total) if self.away else total
        numbers = (value, _each(w, v, self.line.multiplier))
        if v.apart:
            low, upper = (_each(w, v, int(wrap(half, 32))) for half in (self.line.addend, self.line.addend >> HIGH))
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


@dataclass(frozen=True)
class SumRule:
    """left and right: the alignment of each operand; `output` and the bounds: the scaling of their sum."""

    left: Split
    right: Split
    output: Scaled
    bounds: tuple[int, int]
    operation: str = "add"

    def operand(self, w: Writer, v: Vectors, value: str, right: bool) -> str:
        """An expression for an aligned operand, without its constant; `value` is a vector of 32-bit numbers."""
        split = self.right if right else self.left
        if split.shift == 0:
            return _split(w, v, value, split)
        centred = f"{value}_centred"
        v.let(w, "sums", centred, v.call(w, "sub", value, _each(w, v, split.zero)))
        sign = v.call(w, "shift_right", centred, of=(31,))
        away = v.call(w, "add", sign, _each(w, v, 1 << (split.shift - 1)))
        return v.call(w, "shift_right", v.call(w, "add", _split(w, v, centred, split), away), of=(split.shift,))

    def join(self, w: Writer, v: Vectors, left: str, right: str, total: str) -> None:
        """Sets `total`, which may be an operand's variable, to the output, not clamped yet."""
        first = self.operand(w, v, left, right=False)
        w(f"{total} = {v.call(w, self.operation, first, self.operand(w, v, right, right=True))};")
        self.output.apply(w, v, total)

    def turned(self) -> SumRule:
        """The same with swapped operands."""
        return replace(self, left=self.right, right=self.left)


def _split(w: Writer, v: Vectors, value: str, split: Split) -> str:
    whole = _product(w, v, value, split.whole)
    if split.fraction == 0 and 0 <= split.addend < 2**SPLIT_BITS:
        return whole
    lifted = v.call(w, "add", _product(w, v, value, split.fraction), _each(w, v, split.addend))
    return v.call(w, "add", whole, v.call(w, "shift_right", lifted, of=(SPLIT_BITS,)))


def _product(w: Writer, v: Vectors, value: str, factor: int) -> str:
    if factor & (factor - 1) == 0 and factor > 0:
        return v.call(w, "shift_left", value, of=(factor.bit_length() - 1,)) if factor > 1 else value
    return v.call(w, "mul", value, _each(w, v, factor))


def _each(w: Writer, v: Vectors, value: int) -> str:
    return v.call(w, "each", str(value))


def sum_rule(site: Site[Binary]) -> SumRule | str:
    """The rule of an addition or subtraction, or why there is none."""
    attributes = site.attributes
    if attributes.function not in SIGNS:
        return "it adds or subtracts only"
    form = formats(site)
    scales = form.sum_scales()
    left = fitted_split(form.zeros[0], scales.left_shift, scales.first)
    right = fitted_split(form.zeros[1], scales.left_shift, scales.second)
    if left is None or right is None:
        return "an operand's scale cannot be two products in 32 bits"
    limit = bounds(attributes.clamp, site.outputs[0])
    output = scaled_by(scales.output, form.zeros[2], (-LARGEST_SUM, LARGEST_SUM), upward=limit[0] >= form.zeros[2])
    if output is None:
        return "its output scale needs a shift to the left"
    sign, operation = SIGNS[attributes.function]
    constant = left.constant + sign * right.constant
    return SumRule(left, right, replace(output, constant=constant), limit, operation)


@dataclass(frozen=True)
class ProductRule:
    """The product of two operands less their zero points, as an output."""

    zeros: tuple[int, int]
    output: Scaled
    bounds: tuple[int, int]

    def join(self, w: Writer, v: Vectors, left: str, right: str, total: str) -> None:
        """Sets `total`, which may be an operand's variable, to the output, not clamped yet."""
        first, second = (
            v.call(w, "sub", name, _each(w, v, zero)) if zero else name
            for name, zero in zip((left, right), self.zeros, strict=True)
        )
        w(f"{total} = {v.call(w, 'mul', first, second)};")
        self.output.apply(w, v, total)


def product_rule(site: Site[Binary]) -> ProductRule | str:
    """The rule of a multiplication, or why there is none."""
    attributes = site.attributes
    if attributes.function != "multiply":
        return "it multiplies"
    if attributes.once:
        return "it rounds twice"
    form, limit = formats(site), bounds(attributes.clamp, site.outputs[0])
    output = scaled_by(form.product_scale(), form.zeros[2], (-(255**2), 255**2), upward=limit[0] >= form.zeros[2])
    return ProductRule(form.zeros[:2], output, limit) if output else "its output scale needs a shift to the left"
