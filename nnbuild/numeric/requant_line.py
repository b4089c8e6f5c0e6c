"""The form of sets with 64-bit products: out = hold((v * multiplier + addend) >> shift), v = (sum - centre) << left.

The result is read from the upper half, so the shift is at least 32. If `away` is -1, negative numbers lose 1 in the
upper half before the rest of the shift: their halves go away from zero. That requires the shift of the rule's own
multiplier, with which outputs with a scale of 2**-26 and sums of 2**26 may need more than 64 bits: such a channel has
no line.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple, cast

import numpy as np

from nnbuild.numeric.requant import Channel, Layer, Line, recorded, roomiest, slack
from nnbuild.numeric.rounding import INT32, Ints, ints

HIGH = 32
LONGEST = 63
TRIES = 8


class Numbers(NamedTuple):
    """One channel's constants."""

    centre: int
    left: int
    multiplier: int
    addend: int
    shift: int
    away: int = 0

    def outputs(self, acc: Ints) -> Ints:
        value = (ints(acc) - self.centre) << self.left
        return (((value * self.multiplier + self.addend) >> HIGH) + self.away * (value < 0)) >> (self.shift - HIGH)


@dataclass(frozen=True, eq=False)
class Lines:
    """A layer's constants; `shifted` where sums are shifted to the left and `away` applies."""

    numbers: tuple[Numbers, ...]
    shifted: bool

    def of(self, name: str) -> Ints:
        return ints([getattr(number, name) for number in self.numbers])


def lines(layer: Layer, lefts: bool = True) -> Lines | None:
    """The constants of every channel, without shifts to the left where possible.

    If one is needed, all sums are doubled; `lefts` says whether a channel may have a larger shift.
    """
    for shifted in (False, True):
        found = (_numbers(channel, shifted, lefts) for channel in layer.channels)
        numbers = tuple(takewhile(lambda number: number is not None, found))
        if len(numbers) == len(layer.channels):
            return recorded(layer, Lines(cast(tuple[Numbers, ...], numbers), shifted))
    return None


def _numbers(channel: Channel, shifted: bool, lefts: bool) -> Numbers | None:
    if channel.wraps:
        return None
    if channel.constant:
        return Numbers((channel.low + channel.high) // 2, int(shifted), 0, channel.ends[0] << HIGH, HIGH)
    if channel.line:
        number = _exact(channel.line, shifted, lefts)
        number = _recentred(number, channel) if number and not number.away else number
        if number and _inside(number, channel):
            return number
    if channel.signed and len(channel.steps[0]) > 2 and not shifted:
        return None
    return _fitted(channel, shifted, lefts)


def _exact(line: Line, shifted: bool, lefts: bool) -> Numbers | None:
    """The line's own constants: doubled sums have a unit in the upper half to account for halves."""
    if line.kink and not shifted:
        return None
    spare = line.multiplier.bit_length() - 31  # bits of the multiplier that become shifts of the sum
    left = max(spare, 0) + 1 if shifted else 0
    if (spare > 0 and not shifted) or (left > 1 and not lefts):
        return None
    multiplier, by = line.multiplier >> max(spare, 0), left - max(spare, 0)
    more = max(HIGH - line.shift - by, 0)
    if (multiplier << more).bit_length() > 31:
        return None
    away = -1 if line.kink else 0
    return Numbers(0, left, multiplier << more, line.addend << (by + more), line.shift + by + more, away)


def _fitted(channel: Channel, shifted: bool, lefts: bool) -> Numbers | None:
    """A multiplier, nearly always the nearest, and an addend in the range that all steps allow."""
    real = Fraction(channel.real)
    left = int(shifted)
    while shifted and lefts and real >= Fraction(2) ** (left - 1):
        left += 1
    marks = channel.corners
    shift = _finest(channel, left)
    for scale in range(shift, max(shift - TRIES, HIGH - 1), -1):
        multiplier = min(max(round(real * Fraction(2) ** (scale - left)), 1), INT32[1])
        least, most = slack(multiplier << left, scale, marks)
        if least > most:
            multiplier = roomiest(multiplier, scale, marks, 1 << left)
            least, most = slack(multiplier << left, scale, marks)
        addend = min(max(((2 * channel.zero + 1) << scale) >> 1, least), most)
        number = _recentred(Numbers(0, left, multiplier, addend, scale), channel)
        if least <= most and _inside(number, channel):
            return number
    return None


def _finest(channel: Channel, left: int) -> int:
    """The largest shift for multipliers of 31 bits."""
    exponent = int(np.frexp(channel.real)[1])
    return min(31 - exponent + left, LONGEST)


def _recentred(number: Numbers, channel: Channel) -> Numbers:
    """The same for sums around the middle of their range, where they need fewer bits."""
    if max(-channel.low, channel.high) << number.left <= INT32[1]:
        return number
    centre = (channel.low + channel.high) // 2
    return number._replace(centre=centre, addend=number.addend + centre * (number.multiplier << number.left))


def _inside(number: Numbers, channel: Channel) -> bool:
    """Whether sums fit 32 bits, and products with all summands 64."""
    ends = [(end - number.centre) << number.left for end in (channel.low, channel.high)]
    totals = [end * number.multiplier + number.addend for end in (*ends, 0)]
    fits = max(map(abs, ends)) <= INT32[1] and max(map(abs, totals)) < (1 << 63) - (1 << HIGH)
    return fits and HIGH <= number.shift <= LONGEST
