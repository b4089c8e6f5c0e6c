"""Scaling as one multiplication, one addition and one shift: (acc * multiplier + addend) >> shift.

Vector units have no rounding instructions, but 64-bit additions are nearly free. A rule that rounds once is always such
a line; one that rounds twice is a line if halves may go up, and a line for doubled sums if they go away from zero. The
output's zero point is part of the addend. Everything here runs at build time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT8, high_multiply, ints, requantize

HIGH = 32
"""The least shift: a line's result is read from the upper half of 64 bits."""


class Line(NamedTuple):
    """multiplier below 2**31, shift from 32 to 63."""

    multiplier: int
    addend: int
    shift: int

    def fits(self, sums: tuple[int, int]) -> bool:
        """Whether all sums in the range stay within 64 bits."""
        most = max(abs(sums[0]), abs(sums[1])) * self.multiplier + abs(self.addend)
        return HIGH <= self.shift < 2 * HIGH and 0 <= self.multiplier < 2**31 and most < 2**63 - 2**HIGH


def constant_line(value: int) -> Line:
    return Line(0, value << HIGH, HIGH)


def upward_line(scale: Multiplier, zero: int) -> Line:
    """`rounding.requantize` plus the zero point, for sums of at least 0; those below give at most the zero point."""
    if scale.multiplier == 0:
        return constant_line(zero)
    right = -scale.shift
    half = 1 << (30 + right) if right > 0 else 0
    return Line(scale.multiplier, (1 << 30) + half + (zero << (31 + right)), 31 + right)


def doubled_line(scale: Multiplier, zero: int) -> Line:
    """`rounding.requantize` plus the zero point, for sums shifted left by `doubled_left`.

    If right shifts follow, 1 must be subtracted from the upper half of a negative sum's result before the rest of the
    shift: halves go away from zero.
    """
    if scale.multiplier == 0:
        return constant_line(zero)
    right = max(-scale.shift, 0)
    half = 1 << (31 + right) if right > 0 else 0
    return Line(scale.multiplier, (1 << 31) + half + (zero << (HIGH + right)), HIGH + right)


class Split(NamedTuple):
    """x * whole + ((x * fraction + addend) >> SPLIT_BITS), for 8-bit x less `zero`, in 32 bits.

    A `shift` other than 0 divides the result by 2**shift, halves away from zero. `constant` is added at the very end.
    """

    whole: int
    fraction: int
    addend: int
    zero: int = 0
    shift: int = 0
    constant: int = 0


SPLIT_BITS = 22


def fitted_split(zero: int, left_shift: int, scale: Multiplier) -> Split | None:
    """A split equal to `requantize((x - zero) << left_shift, *scale)` for every 8-bit x, if there is one."""
    x = range(INT8[0], INT8[1] + 1)
    real = Fraction(scale.multiplier) * Fraction(2) ** (scale.shift - 31 + left_shift)
    wanted = requantize((ints(list(x)) - zero) << left_shift, *scale).tolist()
    constant = -zero * math.floor(real)
    at_once = _split(real, list(x), [value - constant for value in wanted])
    if at_once is not None or scale.shift >= 0:
        return at_once._replace(constant=constant) if at_once is not None else None
    centred = [value - zero for value in x]
    high = high_multiply(ints(centred) << left_shift, scale.multiplier).tolist()
    in_two = _split(real * 2**-scale.shift, centred, high)
    return in_two._replace(zero=zero, shift=-scale.shift) if in_two is not None else None


def _split(real: Fraction, x: list[int], wanted: list[int]) -> Split | None:
    whole = math.floor(real)
    fraction = round((real - whole) * 2**SPLIT_BITS)
    needs = [(value - at * whole) * 2**SPLIT_BITS - at * fraction for at, value in zip(x, wanted, strict=True)]
    least, most = max(needs), min(needs) + 2**SPLIT_BITS - 1
    largest = max(map(abs, x))
    if least > most or max(abs(least), abs(most)) + largest * fraction >= 2**31 or largest * whole >= 2**30:
        return None
    return Split(whole, fraction, (least + most) // 2)
