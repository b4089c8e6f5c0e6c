"""The form of cores with a high multiply: hold((high(v * multiplier) + offset) >> shift), v = (sum - centre) << left.

The high word may be rounded (SMMLAR), and `below` may be taken from the offset where v is negative, for halves that
go away from zero. The centre is part of where sums start, and what sums are shifted by may be part of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nnbuild.numeric.requant import Channel, Layer, Line, roomiest, slack, told
from nnbuild.numeric.rounding import INT32, Ints, ints

LARGEST_SHIFT = 23
"""So that a zero point fits above it."""
CONSTANT_SHIFT = 16
"""Of channels whose multiplier is 0."""
CENTRES = 24
"""How many neighbouring centres are tried, each of which gives the addend another remainder."""
MANY = 1024
"""Steps that are too many for more than the nearest multiplier and a centre of 0."""
TRIES = 6
"""How many smaller shifts are tried."""


@dataclass(frozen=True)
class Form:
    """What an epilogue computes.

    rounded: the high word is. below: what is taken from the offset of negative sums: nothing, 1 of every channel, or
    each channel's own. left and level: one shift before or after the product for all channels, or each its own; least
    is the smallest one before, where it is each channel's own.
    """

    rounded: bool = False
    below: int | None = 0
    left: int | None = None
    level: int | None = None
    least: int = 0


class Column(NamedTuple):
    """One channel's numbers."""

    centre: int
    left: int
    multiplier: int
    offset: int
    shift: int
    below: int = 0

    def steps(self, acc: Ints, rounded: bool) -> tuple[Ints, Ints, Ints]:
        """The sum as it is multiplied, the high word with all that is added to it, and the output, not yet held."""
        value = (ints(acc) - self.centre) << self.left
        high = (value * self.multiplier + (int(rounded) << 31)) >> 32
        added = high + self.offset - self.below * (value < 0)
        return value, added, added >> self.shift


@dataclass(frozen=True, eq=False)
class Products:
    """A layer's numbers in one form."""

    form: Form
    columns: tuple[Column, ...]

    @cached_property
    def factor(self) -> Ints:
        """What sums, or weights and where sums start, are multiplied by."""
        return np.int64(1) << ints([column.left for column in self.columns])

    def of(self, name: str) -> Ints:
        return ints([getattr(column, name) for column in self.columns])


def products(layer: Layer, form: Form, most_left: Ints, room: Ints) -> Products | None:
    """The numbers of every channel, or none where one of them does not fit this form.

    `most_left` is by how many bits each channel's sums may be shifted, `room` what they must stay within beforehand.
    """
    columns = []
    for channel, left, most in zip(layer.channels, most_left.tolist(), room.tolist(), strict=True):
        column = _column(channel, form, left, most)
        if column is None:
            return None
        columns.append(column)
    return told(layer, Products(form, _alike(columns, layer, most_left)))


def _alike(columns: list[Column], layer: Layer, most_left: Ints) -> tuple[Column, ...]:
    """Channels without a product are shifted as all others are, where these agree."""
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
    """The numbers with one shift after the product for all channels, the largest that serves.

    It begins with the one that needs nothing fitted; below it the channels of the smallest scales are. Where the shift
    before it is given, too, with the largest that multipliers of 31 bits allow for.
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
    tries = list(_shifts(channel, form, most_left))
    if channel.line:
        exact = next((found for n, left in tries[:1] if (found := _exact(channel, channel.line, form, n, left))), None)
        if exact and _inside(exact, channel, form, room):
            return exact
    return next((found for n, left in tries if (found := _fitted(channel, form, n, left, room))), None)


def _middle(channel: Channel) -> int:
    return (channel.low + channel.high) // 2


def _exponent(channel: Channel) -> int:
    """Of a scale in [2**(n - 1), 2**n)."""
    return math.frexp(channel.real)[1] if channel.rule == "once" else channel.scale.shift


def _shifts(channel: Channel, form: Form, most_left: int) -> Iterator[tuple[int, int]]:
    """(after, before) the product: those that make a multiplier of 31 bits, then coarser ones."""
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
    """The line's own numbers, where they are whole ones in this form."""
    multiplier = _scaled(line.multiplier, 32 + shift - left - line.shift)
    offset = _scaled(line.addend - (int(form.rounded) << max(line.shift - shift - 1, 0)), shift - line.shift)
    below = _scaled(line.kink, shift - line.shift)
    if multiplier is None or offset is None or below is None or multiplier >= 1 << 31:
        return None
    if form.below is not None and below != form.below and channel.bounds[0] < channel.zero:
        return None
    if form.below is not None:
        below = form.below
    unit = 32 - left - ((multiplier & -multiplier).bit_length() - 1)  # centres of so many bits move whole offsets
    centre = (
        0
        if below or max(-channel.low, channel.high) << left <= INT32[1]
        else _middle(channel) >> max(unit, 0) << max(unit, 0)
    )
    return Column(centre, left, multiplier, offset + (centre * (multiplier << left) >> 32), shift, below)


def _scaled(number: int, by: int) -> int | None:
    """number * 2**by, where that is whole."""
    if by >= 0:
        return number << by
    return None if number & ((1 << -by) - 1) else number >> -by


def _fitted(channel: Channel, form: Form, shift: int, left: int, room: int) -> Column | None:
    """Other numbers that step where the rule does: a multiplier and a centre for which a whole offset is left."""
    (steps, values), scale, unit = channel.steps, 32 + shift, 1 << left
    nearest = round(Fraction(channel.real) * Fraction(2) ** (scale - left))
    if len(steps) > 2 and (nearest >= 1 << 31 or 4 * nearest * unit < int(steps[-1] - steps[0])):
        return None  # too coarse for so many steps
    if int(np.abs(values).max()) << shift > INT32[1]:
        return None
    nearest = min(max(nearest, 1), (1 << 31) - 1)
    for multiplier in _multipliers(nearest, scale, channel, unit):
        for centre in _centres(channel, room, left):
            column = _with_offset(channel, form, shift, left, multiplier, centre)
            if column and _inside(column, channel, form, room):
                return column
    return None


def _multipliers(nearest: int, scale: int, channel: Channel, unit: int) -> Iterator[int]:
    """The nearest, and where it will not do the one that leaves most room; that takes long where steps are many."""
    least, most = slack(nearest * unit, scale, channel.marks)
    if least <= most:
        yield nearest
    if len(channel.steps[0]) <= MANY:
        yield roomiest(nearest, scale, channel.marks, unit)


def _with_offset(channel: Channel, form: Form, shift: int, left: int, multiplier: int, centre: int) -> Column | None:
    kink, half = (form.below or 0) << 32, int(form.rounded) << 31
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
    """Whether nothing leaves 32 bits on the way, nor sums what there is for them."""
    ends = ints([channel.low, channel.high])
    spare = int(form.level is not None and form.left is None)
    value, added, _ = column.steps(ends, form.rounded)
    return bool(
        np.abs(ends - column.centre).max() <= room
        and max(np.abs(value).max() << spare, np.abs(added).max(), abs(column.offset) + column.below) <= INT32[1]
    )
