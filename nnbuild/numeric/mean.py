"""The mean of bytes by a multiplication instead of a division."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.numeric.rounding import rounding_mean

MEAN_BITS = 24


@lru_cache(maxsize=256)
def mean_factor(count: int) -> int | None:
    """The factor of (|sum| + count / 2) whose product has the quotient by count in its upper bits; proven for every
    sum."""
    factor = -(-(1 << MEAN_BITS) // count)
    sums = np.arange(128 * count + 1)
    products = (sums + count // 2) * factor
    fits = products.max() < 2**32 and np.array_equal(products >> MEAN_BITS, rounding_mean(sums, count))
    return factor if fits else None
