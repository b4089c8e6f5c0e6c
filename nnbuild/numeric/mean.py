"""Means of integers by a multiplication instead of a division, halves away from zero.

Of bytes: (sum * factor + MEAN_HALF - (sum < 0)) >> MEAN_BITS; where halves are rounded upward, MEAN_LIFT for each byte
is added instead. Of 16-bit words: their magnitudes, or sums lifted to at least 0, times a factor of more bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.numeric.rounding import INT8, INT32, ints, rounding_mean

MEAN_BITS = 23
MEAN_HALF = 1 << (MEAN_BITS - 1)
MEAN_LIFT = 128
"""More than what the factor adds to the product of a byte less than zero."""


def factor_above(count: int, bits: int) -> int:
    """A factor for windows whose number of inputs is known at run time only."""
    return -(-(1 << bits) // count)


@lru_cache(maxsize=256)
def mean_factor(count: int, upward: bool = False) -> int | None:
    """The factor for sums of `count` bytes; proven for every sum, in 32 bits."""
    factors = factor_above(count, MEAN_BITS), (1 << MEAN_BITS) // count
    return next((factor for factor in factors if _is_exact(factor, count, upward)), None)


def _is_exact(factor: int, count: int, upward: bool) -> bool:
    sums = np.arange(INT8[0] * count, INT8[1] * count + 1)
    products = sums * factor + MEAN_HALF + (MEAN_LIFT * count if upward else -ints(sums < 0))
    fits = INT32[0] <= products.min() and products.max() <= INT32[1]
    return fits and np.array_equal(products >> MEAN_BITS, rounding_mean(sums, count, upward))


MOST_WORDS = 1 << 13
"""Words of a window whose sum, times four, fits 32 bits."""
WORD_LIFT = 1 << 15
"""Added to each word of a sum, none is negative."""
FEW_WORDS = 127
"""Words whose lifted sum any count up to this one divides by a factor of RUN_BITS."""
RUN_BITS = 30


def word_factor(count: int) -> tuple[int, int]:
    """(factor, shift) that divide by `count`: four times the magnitude of a sum of so many 16-bit numbers, with half of
    `count` added, times the factor, shifted by 32 and more. The factor is too large by less than what shows, for sums
    of lifted numbers, too."""
    shift = (count - 1).bit_length()
    return -(-(1 << (30 + shift)) // count), shift
