"""The mean of bytes by a multiplication instead of a division: (sum * factor + MEAN_HALF - (sum < 0)) >> MEAN_BITS."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.numeric.rounding import INT8, INT32, rounding_mean

MEAN_BITS = 23
MEAN_HALF = 1 << (MEAN_BITS - 1)


def factor_above(count: int) -> int:
    """The factor for windows whose number of inputs is known at run time only."""
    return -(-(1 << MEAN_BITS) // count)


@lru_cache(maxsize=256)
def mean_factor(count: int) -> int | None:
    """The factor for sums of `count` bytes; proven for every sum, in 32 bits."""
    return next((n for n in (factor_above(count), (1 << MEAN_BITS) // count) if _is_exact(n, count)), None)


def _is_exact(factor: int, count: int) -> bool:
    sums = np.arange(INT8[0] * count, INT8[1] * count + 1)
    products = sums * factor + MEAN_HALF - (sums < 0)
    fits = INT32[0] <= products.min() and products.max() <= INT32[1]
    return fits and np.array_equal(products >> MEAN_BITS, rounding_mean(sums, count))
