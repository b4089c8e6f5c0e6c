"""Local response normalization in integers; TFLite has no integer form of it.

bias + alpha * sum of squares is one 62-bit number. Its power -beta is split: the mantissa's comes from a table of 257
entries with linear interpolation, the exponent's from one multiplier each that includes the scales of input and output.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.multiplier import wide_scale
from nnbuild.numeric.rounding import Ints, ints, scale_wide

TOP = 62
MANTISSA = 30
INDEX = 8


class LrnScales(NamedTuple):
    """total = base + factor * squares; `multiplier` and `right` are indexed by its top bit less `first`."""

    base: int
    factor: int
    powers: Ints
    first: int
    multiplier: Ints
    right: Ints


def lrn_scales(
    in_scale: float, largest_squares: int, out_scale: float, options: tuple[float, float, float]
) -> LrnScales:
    """`options` are bias, alpha and beta; bias and alpha must not be negative."""
    bias, alpha, beta = options
    _, exponent = math.frexp(bias + alpha * in_scale**2 * largest_squares)
    point = TOP - 1 - exponent
    base, factor = round(math.ldexp(bias, point)), round(math.ldexp(alpha * in_scale**2, point))
    first, last = top_bit(base), top_bit(base + factor * largest_squares)
    powers = np.floor((1 + np.arange((1 << INDEX) + 1) / (1 << INDEX)) ** -beta * 2.0**MANTISSA + 0.5)
    wide = [
        wide_scale(2.0 ** (-beta * (top - point)) * in_scale / out_scale / 2.0**MANTISSA)
        for top in range(first, last + 1)
    ]
    multiplier, right = ints([s.multiplier for s in wide]), ints([s.right for s in wide])
    return LrnScales(base, factor, powers.astype(np.int64), first, multiplier, right)


def top_bit(value: int) -> int:
    """The index of the highest bit set; 0 counts as 1."""
    return max(value, 1).bit_length() - 1


def lrn(x: ArrayLike, squares: ArrayLike, out_zero: int, scales: LrnScales) -> Ints:
    """x, less its zero point, divided by the power for the sum of squares around each; not clamped yet."""
    total = np.maximum(scales.base + ints(squares) * scales.factor, 1)
    top = _top_bits(total)
    mantissa = (total << (TOP - top)) >> (TOP - MANTISSA)
    below = MANTISSA - INDEX
    index, fraction = (mantissa >> below) & ((1 << INDEX) - 1), mantissa & ((1 << below) - 1)
    low, high = scales.powers[index], scales.powers[index + 1]
    power = low - (((low - high) * fraction) >> below)
    place = top - scales.first
    return scale_wide(ints(x) * power, scales.multiplier[place], scales.right[place]) + out_zero


def _top_bits(total: Ints) -> Ints:
    """In two halves, since a float64 has only 53 bits."""
    upper = total >> 31
    _, exponent = np.frexp(np.where(upper > 0, upper, total).astype(np.float64))
    return ints(exponent) - 1 + np.where(upper > 0, 31, 0)
