"""A function of two 8-bit numbers that is nearly linear, as one sum of two products and a shift, if that is exact.

TFLite adds two numbers of different scales by bringing each to a common one, which rounds three times. The result is
within a whisker of a linear function, and there are no more than 65,536 pairs: so coefficients are looked for that
give the very same result for every one of them. All of it runs at build time.
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
"""Shifts that are tried, the finest first; a coarser one rarely serves where these do not."""
NEAR, FAR = (0, 128, -128, 256, -256), (0, 256, -256, 512, -512, 768, -768, 1024, -1024)
NEIGHBOURS = tuple(dict.fromkeys((*product(NEAR, repeat=2), *product(FAR, repeat=2))))
"""How far from the nearest coefficients one looks."""


class LinearSum(NamedTuple):
    """((a * first >> FRACTION) + (b * second >> FRACTION) + start) >> shift, before it is held within bounds."""

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
    """Coefficients that give `wanted`, held within bounds, for all `pairs`; None where there are none.

    `slopes` is by how much the result grows with either number, `fraction` how many bits of a product are dropped.
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
    """With these coefficients, a start between what all results allow."""
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
