"""Scaling as one multiplication, one addition and one shift: (acc * multiplier + addend) >> shift.

Vector units have no rounding instructions, but 64-bit additions are nearly free. A rule that rounds once is always such
a line; one that rounds twice is a line if halves may go up, and a line for doubled sums if they go away from zero. The
output's zero point is part of the addend. Everything here runs at build time.
"""

from __future__ import annotations

from typing import NamedTuple

from nnbuild.numeric.multiplier import Multiplier

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
