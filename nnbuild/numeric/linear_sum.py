"""A nearly linear function of two 8-bit numbers as one sum of two products and a shift, if that is exact.

TFLite adds two numbers of different scales by scaling each to a common scale, which rounds three times. The result is
very close to a linear function, and there are at most 65,536 pairs: so a search finds coefficients that give the same
result for each of them. All of it runs at build time.
"""

from __future__ import annotations

from itertools import product
from math import frexp
from typing import NamedTuple

import numpy as np

from nnbuild.numeric.rounding import INT8, INT32, Ints, ints

FRACTION = 8
"""Bits of a product that are dropped before it is added."""
TRIES = 3
"""Shifts to try, the finest first; a coarser one rarely serves where these do not."""
NEAR, FAR = (0, 128, -128, 256, -256), (0, 256, -256, 512, -512, 768, -768, 1024, -1024)
NEIGHBOURS = tuple(dict.fromkeys((*product(NEAR, repeat=2), *product(FAR, repeat=2))))
"""The distances from the nearest coefficients that are searched."""


class LinearSum(NamedTuple):
    """((a * first >> FRACTION) + (b * second >> FRACTION) + start) >> shift, before it is clamped."""

    first: int
    second: int
    start: int
    shift: int


def pairs() -> tuple[Ints, Ints]:
    """Every pair of 8-bit numbers: a down, b across."""
    numbers = ints(np.arange(INT8[0], INT8[1] + 1))
    return numbers[:, None], numbers[None, :]


def linear_sum(
    wanted: Ints, slopes: tuple[float, float], bounds: tuple[int, int], fraction: int = FRACTION
) -> LinearSum | None:
    """Coefficients that give `wanted`, clamped, for all `pairs`; None where there are none.

    `slopes` are the increases of the result with either number, `fraction` the dropped bits of a product.
    """
    for shift in range(_finest(slopes), _finest(slopes) - TRIES, -1):
        nearest = [round(slope * 2 ** (shift + fraction)) for slope in slopes]
        for apart in NEIGHBOURS:
            first, second = (n + (by >> (FRACTION - fraction)) for n, by in zip(nearest, apart, strict=True))
            found = _fitting(wanted, first, second, shift, bounds, fraction)
            if found is not None:
                return found
    return None


def _finest(slopes: tuple[float, float]) -> int:
    """The largest shift for which sums and coefficients surely fit 32 bits."""
    reach = 256 * (abs(slopes[0]) + abs(slopes[1]) + 1)
    return min(30, 31 - frexp(reach)[1])


def _fitting(
    wanted: Ints, first: int, second: int, shift: int, bounds: tuple[int, int], fraction: int
) -> LinearSum | None:
    """Adds a start within the range that all results allow, if there is one."""
    a, b = pairs()
    sums = (a * first >> fraction) + (b * second >> fraction)
    low, high = bounds
    lowest = int(np.max(np.where(wanted > low, (wanted << shift) - sums, INT32[0])))
    highest = int(np.min(np.where(wanted < high, ((wanted + 1) << shift) - 1 - sums, INT32[1])))
    if lowest > highest:
        return None
    start = lowest + (highest - lowest) // 2
    reach = ((abs(first) + abs(second)) * 128 >> fraction) + abs(start) + 2
    fits = max(reach, abs(first), abs(second)) <= INT32[1]
    return LinearSum(first, second, start, shift) if fits else None
