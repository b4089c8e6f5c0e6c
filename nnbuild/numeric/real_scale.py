"""Multiplication of an accumulator by a float64 scale, as FULLY_CONNECTED does it.

TFLite's reference FULLY_CONNECTED, alone among the operators, rounds the float64 product of the
accumulator and the real scale, in 8 and in 16 bits. `apply_real_scale` is this definition. A device
without floating point needs the same result from integers: `integer_scale` finds a multiplier that is
proven to give it for every accumulator the layer can produce. Both are step functions that never
decrease, so they are equal when they agree on either side of every step.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import Ints, ints

LOW_BITS = 26
WIDTHS = (31, 36, 40, 44, 48, 52, 53)  # how many bits a multiplier may have; 53 hold a float64 exactly


class IntegerScale(NamedTuple):
    """acc * multiplier / 2**shift, rounded once: halves up, or away from zero."""

    multiplier: int
    shift: int
    away: bool


def apply_real_scale(acc: ArrayLike, real: ArrayLike) -> Ints:
    """The float64 product, to nearest, halves away from zero. C++: (int32_t)round((double)acc * real)"""
    product = ints(acc).astype(np.float64) * np.asarray(real, np.float64)
    return round_half_away(product).astype(np.int64)


def apply_integer_scale(acc: ArrayLike, scale: IntegerScale) -> Ints:
    """The same from integers, for |acc| < 2**36 and shift > 26, in two 64-bit products.

    C, when the product fits 64 bits: (acc * multiplier + half - (away && acc < 0)) >> shift
    """
    value = ints(acc)
    low, high = scale.multiplier & ((1 << LOW_BITS) - 1), scale.multiplier >> LOW_BITS
    carry = (value * low - (value < 0) * int(scale.away)) >> LOW_BITS
    half = np.int64(1) << (scale.shift - 1 - LOW_BITS)
    return (value * high + carry + half) >> (scale.shift - LOW_BITS)


@lru_cache(maxsize=4096)
def integer_scale(real: float, acc_bounds: tuple[int, int], out_bounds: tuple[int, int]) -> IntegerScale:
    """The narrowest multiplier that equals `apply_real_scale` on the whole range of accumulators.

    Results outside `out_bounds` are clamped afterwards, so they need only be outside on the same side.
    """
    if real == 0.0:
        return IntegerScale(0, LOW_BITS + 5, False)
    steps, values = steps_of(real, acc_bounds, out_bounds)
    for width in WIDTHS:
        multiplier, shift = _nearest(real, width)
        for away in (False, True):
            candidate = IntegerScale(multiplier, shift, away)
            if _agrees(candidate, real, steps, values):
                return candidate
    raise ArithmeticError(f"no integer multiplier reproduces the scale {real!r}")


def _nearest(real: float, width: int) -> tuple[int, int]:
    fraction, exponent = math.frexp(real)
    shift = width - exponent
    multiplier = round(Fraction(fraction) * 2**width)
    return multiplier, shift


def steps_of(real: float, accs: tuple[int, int], outs: tuple[int, int]) -> tuple[Ints, Ints]:
    """For each output value k above the first: the smallest accumulator that gives at least k."""
    reach = apply_real_scale(accs, real)
    low, high = max(outs[0], int(reach[0])), min(outs[1], int(reach[1]))
    values = np.arange(low + 1, high + 1, dtype=np.int64)
    steps = np.ceil((values - 0.5) / real).astype(np.int64)
    for _ in range(3):  # the quotient may be off by one either way
        steps = np.where(apply_real_scale(steps - 1, real) >= values, steps - 1, steps)
        steps = np.where(apply_real_scale(steps, real) < values, steps + 1, steps)
    return steps, values


def _agrees(scale: IntegerScale, real: float, steps: Ints, values: Ints) -> bool:
    """Whether the integer form steps where the float form does.

    Where both neighbours of a step lie farther from the half than the multiplier's error can move
    them, nothing needs to be computed; the rest is compared exactly.
    """
    error = abs(Fraction(scale.multiplier, 2**scale.shift) - Fraction(real)) if scale.shift >= 0 else Fraction(1)
    distance = np.minimum(_distance(steps, values, real), _distance(steps - 1, values, real))
    slack = (np.abs(steps) + 1) * float(error) + np.abs(values) * 2.0**-50
    near = np.flatnonzero(distance <= slack)
    return all(
        _once(int(steps[i]), scale) >= int(values[i]) and _once(int(steps[i]) - 1, scale) < int(values[i]) for i in near
    )


def _distance(accs: Ints, values: Ints, real: float) -> NDArray[np.float64]:
    return np.asarray(np.abs(accs * real - (values - 0.5)))


def _once(acc: int, scale: IntegerScale) -> int:
    product = acc * scale.multiplier
    return (product + (1 << (scale.shift - 1)) - (scale.away and product < 0)) >> scale.shift
