"""The form of cores with a high multiply: hold((high(v * multiplier) + offset) >> shift), v = (sum - centre) << left.

The high word may be rounded (SMMLAR), and `below` may be subtracted from the offset where v is negative, for halves
that go away from zero. The start of sums includes the centre, and the weights may include the left shift.

Where 31 bits of a multiplier step wrongly somewhere, as they do among 65,536 outputs of a float64 product, it may have
a lower half: then high(v * lower) is added to the product before its high word is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nnbuild.numeric.real_scale import integer_scale
from nnbuild.numeric.requant import Channel, Layer, Line, recorded, roomiest, slack
from nnbuild.numeric.rounding import INT32, Ints, ints

LARGEST_SHIFT = 23
"""The largest shift, above which a zero point still fits."""
CONSTANT_SHIFT = 16
"""The shift of channels whose multiplier is 0."""
CENTRES = 24
"""Neighbouring centres to try, each of which gives the addend another remainder."""
MANY = 1024
"""Steps from which only the nearest multiplier and a centre of 0 are tried."""
TRIES = 6
"""Smaller shifts to try."""


@dataclass(frozen=True)
class Form:
    """The arithmetic of an epilogue.

    rounded: whether the high word is. below: subtracted from the offset for negative sums: nothing, 1 in every channel,
    or a number per channel. left and level: a shift before or after the product, common or per channel; least: the
    smallest shift before it, where that is per channel. long: whether multipliers have lower halves.
    """

    rounded: bool = False
    below: int | None = 0
    left: int | None = None
    level: int | None = None
    least: int = 0
    long: bool = False


LONG = Form(left=0, long=True)


class Column(NamedTuple):
    """One channel's constants."""

    centre: int
    left: int
    multiplier: int
    offset: int
    shift: int
    below: int = 0
    lower: int = 0

    def steps(self, acc: Ints, rounded: bool) -> tuple[Ints, Ints, Ints]:
        """The shifted sum, the high word plus all summands, and the output, not clamped yet."""
        value = (ints(acc) - self.centre) << self.left
        high = (value * self.multiplier + (value * self.lower >> 32) + (int(rounded) << 31)) >> 32
        added = high + self.offset - self.below * (value < 0)
        return value, added, added >> self.shift


@dataclass(frozen=True, eq=False)
class Products:
    """A layer's constants in one form."""

    form: Form
    columns: tuple[Column, ...]

    @cached_property
    def factor(self) -> Ints:
        """The factor of sums, or of weights and starts."""
        return np.int64(1) << ints([column.left for column in self.columns])

    def of(self, name: str) -> Ints:
        return ints([getattr(column, name) for column in self.columns])


def products(layer: Layer, form: Form, most_left: Ints, room: Ints) -> Products | None:
    """The constants of every channel, or None if a channel does not fit this form.

    `most_left` is the largest left shift of each channel's sums, `room` their bound before it.
    """
    columns = []
    for channel, left, most in zip(layer.channels, most_left.tolist(), room.tolist(), strict=True):
        column = _column(channel, form, left, most)
        if column is None:
            return None
        columns.append(column)
    return recorded(layer, Products(form, _alike(columns, layer, most_left)))


def _alike(columns: list[Column], layer: Layer, most_left: Ints) -> tuple[Column, ...]:
    """Gives channels without a product the shifts that all other channels share, if they do."""
    lefts = {column.left for column in columns if column.multiplier}
    if len(lefts) != 1:
        return tuple(columns)
    (left,) = lefts
    fits = (left <= most_left) & (layer.high - layer.low < 1 << (31 - left))
    return tuple(
        column._replace(left=left) if not column.multiplier and fit else column
        for column, fit in zip(columns, fits.tolist(), strict=True)
    )


def common_level(layer: Layer, form: Form, most_left: Ints, room: Ints, least: int = 1) -> Products | None:
    """The constants with one common shift after the product, the largest that serves.

    It starts from the shift that needs no fitting; smaller ones include the channels of the smallest scales. If the
    shift before the product is common too, it is the largest that 31-bit multipliers allow.
    """
    apart = [-1 - _exponent(channel) for channel in layer.channels if not channel.constant]
    if form.left is not None:
        largest = min(max(least, form.left + min(apart, default=0)), LARGEST_SHIFT)
        return products(layer, replace(form, level=largest), most_left, room)
    natural = max([least, *(shift + 2 * (layer.rule == "twice") for shift in apart)])
    for level in range(min(natural, LARGEST_SHIFT), 0, -1):
        found = products(layer, replace(form, level=level), most_left, room)
        if found is not None:
            return found
    return None


def _column(channel: Channel, form: Form, most_left: int, room: int) -> Column | None:
    if channel.wraps:
        return None
    if channel.constant:
        shift = CONSTANT_SHIFT if form.level is None else form.level
        offset = ((2 * channel.ends[0] + 1) << shift) >> 1
        column = Column(_middle(channel), form.left or form.least, 0, offset, shift, form.below or 0)
        return column if _inside(column, channel, form, room) else None
    if form.long:
        return _long(channel, room)
    tries = list(_shifts(channel, form, most_left))
    if channel.line:
        exact = next((found for n, left in tries[:1] if (found := _exact(channel, channel.line, form, n, left))), None)
        if exact and _inside(exact, channel, form, room):
            return exact
    return next((found for n, left in tries if (found := _fitted(channel, form, n, left, room))), None)


def _long(channel: Channel, room: int) -> Column | None:
    """A multiplier of 63 bits for a float64 product, sums not being shifted.

    It is the integer scale's own, and so as exact; where halves go away from zero, one more, if that steps alike.
    """
    if channel.rule != "once":
        return None
    outs = (channel.bounds[0] - channel.zero - 1, channel.bounds[1] - channel.zero + 1)
    found = integer_scale(channel.real, (channel.low, channel.high), outs)
    first = min(found.shift - found.multiplier.bit_length() - 1, LARGEST_SHIFT)
    for shift in range(first, max(first - 2, 0), -1):  # the second where the upper half is rounded to 32 bits
        exact = _scaled(found.multiplier, 64 + shift - found.shift)
        if exact is not None and not found.floating:
            column = _in_halves(channel, exact + found.away, shift)
            stepping = not found.away or _steps_alike(channel, exact + 1, column)
            if column.multiplier <= INT32[1] and stepping and _inside(column, channel, LONG, room):
                return column
    return None


def _in_halves(channel: Channel, multiplier: int, shift: int) -> Column:
    upper, offset = (multiplier + (1 << 31)) >> 32, ((2 * channel.zero + 1) << shift) >> 1
    return Column(0, 0, upper, offset, shift, lower=multiplier - (upper << 32))


def _steps_alike(channel: Channel, multiplier: int, column: Column) -> bool:
    least, most = slack(multiplier, 64 + column.shift, channel.corners)
    return least <= column.offset << 64 <= most


def _middle(channel: Channel) -> int:
    return (channel.low + channel.high) // 2


def _exponent(channel: Channel) -> int:
    """n of a scale in [2**(n - 1), 2**n)."""
    return math.frexp(channel.real)[1] if channel.rule == "once" else channel.scale.shift


def _shifts(channel: Channel, form: Form, most_left: int) -> Iterator[tuple[int, int]]:
    """Shifts (after, before) the product: those of 31-bit multipliers, then coarser ones."""
    apart = -1 - _exponent(channel)
    if form.level is not None and form.left is not None:
        yield form.level, form.left
    elif form.level is not None:
        yield form.level, min(max(form.level - apart, form.least), most_left)
    elif form.left is not None:
        first = min(form.left + apart, LARGEST_SHIFT)
        yield from ((shift, form.left) for shift in range(first, max(first - TRIES, -1), -1))
    else:
        first = min(max(apart + 2, 1), LARGEST_SHIFT - 1)
        yield from ((n, min(max(n - apart, form.least), most_left)) for n in range(first, max(first - TRIES, 0), -1))


def _exact(channel: Channel, line: Line, form: Form, shift: int, left: int) -> Column | None:
    """The line's own constants, where they are integers in this form."""
    multiplier = _scaled(line.multiplier, 32 + shift - left - line.shift)
    offset = _scaled(line.addend - (int(form.rounded) << max(line.shift - shift - 1, 0)), shift - line.shift)
    below = _scaled(line.kink, shift - line.shift)
    if multiplier is None or offset is None or below is None or multiplier >= 1 << 31:
        return None
    if form.below is not None and below != form.below and channel.bounds[0] < channel.zero:
        return None
    if form.below is not None:
        below = form.below
    unit = 32 - left - ((multiplier & -multiplier).bit_length() - 1)  # centres of so many bits move integer offsets
    centre = (
        0
        if below or max(-channel.low, channel.high) << left <= INT32[1]
        else _middle(channel) >> max(unit, 0) << max(unit, 0)
    )
    return Column(centre, left, multiplier, offset + (centre * (multiplier << left) >> 32), shift, below)


def _scaled(number: int, by: int) -> int | None:
    """number * 2**by, if that is an integer."""
    if by >= 0:
        return number << by
    return None if number & ((1 << -by) - 1) else number >> -by


def _fitted(channel: Channel, form: Form, shift: int, left: int, room: int) -> Column | None:
    """Other constants that step where the rule does: a multiplier and a centre that leave an integer offset."""
    (steps, values), scale, unit = channel.steps, 32 + shift, 1 << left
    nearest = round(Fraction(channel.real) * Fraction(2) ** (scale - left))
    if len(steps) > 2 and (nearest >= 1 << 31 or 4 * nearest * unit < int(steps[-1] - steps[0])):
        return None  # too coarse for so many steps
    if int(np.abs(values).max()) << shift > INT32[1]:
        return None
    nearest = min(max(nearest, 1), (1 << 31) - 1)
    for multiplier in _multipliers(nearest, scale, channel, unit):
        whole = slack(multiplier * unit, scale, channel.corners)
        for centre in _centres(channel, room, left):
            column = _with_offset(channel, form, shift, left, multiplier, centre, whole)
            if column and _inside(column, channel, form, room):
                return column
    return None


def _multipliers(nearest: int, scale: int, channel: Channel, unit: int) -> Iterator[int]:
    """The nearest, then the one with the widest range of addends, a search that takes long with many steps."""
    least, most = slack(nearest * unit, scale, channel.corners)
    if least <= most:
        yield nearest
    if len(channel.steps[0]) <= MANY:
        yield roomiest(nearest, scale, channel.corners, unit)


def _with_offset(
    channel: Channel, form: Form, shift: int, left: int, multiplier: int, centre: int, whole: tuple[int, int]
) -> Column | None:
    """The column with an integer offset; `whole` are the addends of sums counted from 0, which move with the centre."""
    kink, half = (form.below or 0) << 32, int(form.rounded) << 31
    least, most = (end + centre * (multiplier << left) for end in whole)
    if kink:
        least, most = slack(multiplier << left, 32 + shift, channel.marks.around(centre), kink)
    first, last = -(-(least - half) >> 32), (most - half) >> 32
    if first > last:
        return None
    usual = ((2 * channel.zero + 1) << shift) >> 1
    return Column(centre, left, multiplier, min(max(usual, first), last), shift, form.below or 0)


def _centres(channel: Channel, room: int, left: int) -> Iterator[int]:
    most = min(room, INT32[1] >> left)
    if -most <= channel.low and channel.high <= most:
        yield 0
    steps = channel.steps[0]
    if len(steps) > MANY:
        return
    for centre in (int(steps[len(steps) // 2]), _middle(channel), channel.low - CENTRES, channel.high + 1):
        yield from range(centre, centre + CENTRES)


def _inside(column: Column, channel: Channel, form: Form, room: int) -> bool:
    """Whether nothing exceeds 32 bits on the way, and sums stay within their bound."""
    ends = ints([channel.low, channel.high])
    spare = int(form.level is not None and form.left is None)
    value, added, _ = column.steps(ends, form.rounded)
    return bool(
        np.abs(ends - column.centre).max() <= room
        and max(np.abs(value).max() << spare, np.abs(added).max(), abs(column.offset) + column.below) <= INT32[1]
    )
