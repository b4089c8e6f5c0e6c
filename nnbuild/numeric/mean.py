"""The mean of bytes by one multiplication in place of a division."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.numeric.rounding import rounding_mean

MEAN_BITS = 24


@lru_cache(maxsize=256)
def mean_factor(count: int) -> int | None:
    """What (|sum| + count / 2) is multiplied by, to be divided by count in the upper bits; proven on every sum."""
    factor = -(-(1 << MEAN_BITS) // count)
    sums = np.arange(128 * count + 1)
    products = (sums + count // 2) * factor
    fits = products.max() < 2**32 and np.array_equal(products >> MEAN_BITS, rounding_mean(sums, count))
    return factor if fits else None
