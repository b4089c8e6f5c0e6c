"""Multiplication of an accumulator by a float64 scale, like FULLY_CONNECTED's.

TFLite's reference FULLY_CONNECTED, alone among the operators, rounds the float64 product of the accumulator and the
real scale, in 8 and in 16 bits. `apply_real_scale` is this definition. A device without floating point needs the same
result from integers: `integer_scale` finds a multiplier that is proven to give it for every accumulator of the layer.
Both are step functions that never decrease, so they are equal when they agree on both sides of every step. About one of
50,000 scales of 16 bits is so near a fraction that products fall on either side of a half as they are rounded to
float64; no multiplier does the same, and that rounding is computed too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import INT32, Ints, ints

LOW_BITS = 26
SMALLEST = -48
"""The exponent of the smallest scale at which an accumulator can reach a half."""
LARGEST = 2.0**24
"""A scale with which every accumulator but 0 exceeds all outputs."""
FLOAT_BITS = 53
NEARLY = 2.0**-50
"""The relative distance within which quotients of floats are compared exactly."""
SUM_BITS = 36
WIDTHS = (31, 36, 40, 44, 48, 52, FLOAT_BITS)  # the widths of a multiplier to try; 53 bits hold a float64 exactly

SCALES = 65536
"""Results that are kept: those of all channels of a layer, as each kernel that is priced asks for all in turn."""


class IntegerScale(NamedTuple):
    """acc * multiplier / 2**shift, rounded once: halves up, or away from zero.

    floating: whether the product is rounded to float64 before; then halves go away from zero.
    """

    multiplier: int
    shift: int
    away: bool
    floating: bool = False


class HighScale(NamedTuple):
    """The same by the upper word of a product: (((acc << left) * multiplier >> 32) + half) >> shift, in 32 bits."""

    left: int
    multiplier: int
    shift: int

    def apply(self, acc: ArrayLike) -> Ints:
        return ((((ints(acc) << self.left) * self.multiplier) >> 32) + (1 << (self.shift - 1))) >> self.shift

    def steps_at(self, steps: Ints, values: Ints) -> bool:
        """Whether these are the smallest accumulators that give these values."""
        return bool((self.apply(steps) >= values).all() and (self.apply(steps - 1) < values).all())


def apply_real_scale(acc: ArrayLike, real: ArrayLike) -> Ints:
    """The float64 product, to nearest, halves away from zero. C++: (int32_t)round((double)acc * real)"""
    product = ints(acc).astype(np.float64) * np.asarray(real, np.float64)
    return round_half_away(product).astype(np.int64)


def apply_integer_scale(acc: ArrayLike, scale: IntegerScale) -> Ints:
    """The same from integers, for |acc| < 2**36 and shift > 26, in two 64-bit products.

    C, when the product fits 64 bits: (acc * multiplier + half - (away && acc < 0)) >> shift
    """
    if scale.floating:
        return apply_real_scale(acc, math.ldexp(scale.multiplier, -scale.shift))
    value = ints(acc)
    low, high = scale.multiplier & ((1 << LOW_BITS) - 1), scale.multiplier >> LOW_BITS
    carry = (value * low - (value < 0) * int(scale.away)) >> LOW_BITS
    half = np.int64(1) << (scale.shift - 1 - LOW_BITS)
    return (value * high + carry + half) >> (scale.shift - LOW_BITS)


@lru_cache(maxsize=SCALES)
def integer_scale(real: float, acc_bounds: tuple[int, int], out_bounds: tuple[int, int]) -> IntegerScale:
    """The narrowest multiplier that equals `apply_real_scale` on the whole range of accumulators.

    Results outside `out_bounds` are clamped afterwards, so they need only be outside on the same side.
    """
    if real == 0.0:
        return IntegerScale(0, LOW_BITS + 5, False)
    if math.frexp(real)[1] < SMALLEST:  # every accumulator becomes zero
        return IntegerScale(0, LOW_BITS + 5, False)
    real = min(real, LARGEST)
    steps, values = steps_of(real, acc_bounds, out_bounds)
    harmless = _harmless_errors(real, steps, values)
    near = (form for width in WIDTHS for form in _forms(Fraction(real), real, width))
    for candidate in itertools.chain(near, _between(real, steps, values)):
        if candidate.shift > LOW_BITS and _agrees(candidate, real, steps, values, harmless):
            return candidate
    return floating_scale(real)


@lru_cache(maxsize=SCALES)
def high_scale(real: float, accs: tuple[int, int], outs: tuple[int, int]) -> HighScale | None:
    """The multiplier that equals `apply_real_scale` on the whole range of accumulators; None where there is none."""
    rooms = (by for by in range(31, -1, -1) if min(accs) << by >= INT32[0] and max(accs) << by <= INT32[1])
    left = next(rooms, None)
    if left is None:
        return None
    steps, values = steps_of(min(real, LARGEST), accs, outs)
    low = max(_limits(steps, values)[0], Fraction(min(real, LARGEST)))
    for shift in range(30, 0, -1):
        multiplier = math.ceil(low * 2 ** (32 + shift - left))
        if multiplier < INT32[1]:
            near = (HighScale(left, multiplier + more, shift) for more in (0, 1))  # halves below zero go away from it
            return next((each for each in near if each.steps_at(steps, values)), None)
    return None


def floating_scale(real: float) -> IntegerScale:
    """The scale itself, for sums below 2**36 and outputs of at most 16 bits."""
    fraction, exponent = math.frexp(min(real, LARGEST))
    if exponent < -SUM_BITS:  # every product is below a half
        return IntegerScale(0, LOW_BITS + 5, True, floating=True)
    return IntegerScale(int(math.ldexp(fraction, FLOAT_BITS)), FLOAT_BITS - exponent, True, floating=True)


def _forms(exact: Fraction, real: float, width: int) -> Iterator[IntegerScale]:
    """Multipliers of `width` bits next to the scale."""
    shift = width - math.frexp(real)[1]
    nearest = round(exact * 2**shift)
    for multiplier in (nearest, nearest + 1, nearest - 1) if exact != Fraction(real) else (nearest,):
        for away in (False, True):
            yield IntegerScale(multiplier, shift, away)


def _between(real: float, steps: Ints, values: Ints) -> Iterator[IntegerScale]:
    """Multipliers of any width within the limits."""
    low, high = _limits(steps, values)
    for limit in ((low + high) / 2, low, high):
        for width in WIDTHS:
            for form in _forms(limit, real, width):
                if form.shift >= 0 and low <= Fraction(form.multiplier, 1 << form.shift) <= high:
                    yield form


def _limits(steps: Ints, values: Ints) -> tuple[Fraction, Fraction]:
    """The smallest and the largest number that steps where the float64 product does: that is not the exact scale where
    the product itself was rounded to a half. None does if the first exceeds the second."""
    accs, halves = np.concatenate([steps, steps - 1]), np.concatenate([2 * values - 1] * 2)
    tops, bottoms = halves * np.sign(accs), 2 * np.abs(accs)
    least = (np.arange(len(accs)) < len(steps)) == (accs > 0)
    low = _largest(tops[least & (accs != 0)], bottoms[least & (accs != 0)])
    high = _largest(-tops[~least & (accs != 0)], bottoms[~least & (accs != 0)])
    return max(low or Fraction(0), Fraction(0)), Fraction(2) ** 64 if high is None else -high


def _largest(tops: Ints, bottoms: Ints) -> Fraction | None:
    """The largest of many fractions; None if there are none."""
    if not len(tops):
        return None
    quotients = tops / bottoms
    near = np.abs(quotients - quotients.max()) <= np.abs(quotients.max()) * NEARLY
    pairs = np.stack([tops, bottoms])[:, near]
    return max(Fraction(*pair) for pair in np.unique(pairs // np.gcd(*pairs), axis=1).T.tolist())


def steps_of(real: float, accs: tuple[int, int], outs: tuple[int, int]) -> tuple[Ints, Ints]:
    """The smallest accumulator that gives at least k, for each output value k above the first."""
    reach = apply_real_scale(accs, real)
    low, high = max(outs[0], int(reach[0])), min(outs[1], int(reach[1]))
    values = np.arange(low + 1, high + 1, dtype=np.int64)
    quotients = (values - 0.5) / real
    steps = np.ceil(quotients).astype(np.int64)
    near = np.flatnonzero(np.abs(quotients - np.rint(quotients)) <= np.abs(quotients) * NEARLY)
    for _ in range(3 if len(near) else 0):  # a quotient beside an integer may be off by one in either direction
        some = steps[near]
        some = np.where(apply_real_scale(some - 1, real) >= values[near], some - 1, some)
        steps[near] = np.where(apply_real_scale(some, real) < values[near], some + 1, some)
    return steps, values


def _agrees(scale: IntegerScale, real: float, steps: Ints, values: Ints, harmless: NDArray[np.float64]) -> bool:
    """Whether the integer form steps where the float form does. Those that its error may move are compared exactly;
    `harmless` tells for each the largest error that cannot."""
    error = abs(Fraction(scale.multiplier, 2**scale.shift) - Fraction(real)) if scale.shift >= 0 else Fraction(1)
    near = np.flatnonzero(harmless <= float(error))
    return all(
        _once(int(steps[i]), scale) >= int(values[i]) and _once(int(steps[i]) - 1, scale) < int(values[i]) for i in near
    )


def _harmless_errors(real: float, steps: Ints, values: Ints) -> NDArray[np.float64]:
    """For each step, a multiplier's error that cannot move it: its product with the sums before and after the step is
    less than their distances from the half, of which the rounding of floats takes a little."""
    above = steps * real - (values - 0.5)
    distances = np.minimum(np.abs(above), np.abs(above - real))
    found: NDArray[np.float64] = (distances - (np.abs(values) + 1) * NEARLY) / (np.abs(steps) + 1)
    return found


def _once(acc: int, scale: IntegerScale) -> int:
    product = acc * scale.multiplier
    return (product + (1 << (scale.shift - 1)) - (scale.away and product < 0)) >> scale.shift
