"""Values beyond what a format holds, which are cut off at its ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.rounding import Ints, limits

SLACK = 1 / 16
"""What lies less than this share of the range beyond it is no news: no samples reach exactly as far as others."""
FEWEST = 1 / 100
"""The share of samples from which on it is."""


def ends(dtype: str, scale: float, zero_point: int) -> tuple[float, float]:
    """The smallest and largest number of an integer format."""
    low, high = dequantize(limits(dtype), scale, zero_point)
    return float(low), float(high)


def cut_off(exact: NDArray[np.floating], low: float, high: float) -> int:
    """The number of samples, along the first axis, with values far beyond the ends; 0 where they are few."""
    slack = SLACK * (high - low)
    far = (exact < low - slack) | (exact > high + slack)
    count = int(far.reshape(len(exact), -1).any(axis=1).sum())
    return count if count >= FEWEST * len(exact) else 0


def cut_outputs(exact: NDArray[np.floating], y: NDArray[np.floating], raw: Ints, step: float) -> int:
    """The same for outputs, whose format shows in one of their numbers; 0 for floats."""
    if raw.dtype.kind not in "iu" or raw.size == 0:
        return 0
    zero = float(y.flat[0]) - float(raw.flat[0]) * step
    low, high = (zero + end * step for end in limits(raw.dtype))
    return cut_off(exact, low, high)
