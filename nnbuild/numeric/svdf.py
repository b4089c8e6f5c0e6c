"""TFLite's filters of features and of time in 8 bits: what the first make goes into a state of 16 bits.

Sums have 32 bits, as TFLite's have: one that is larger loses its upper bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import INT16, Ints, ints, requantize, saturate


def scale_between(first: float, second: float, target: float) -> Multiplier:
    """The multiplier that brings products of two scales to a third, computed in floats as TFLite does."""
    return quantize_multiplier(float(np.float32(first) * np.float32(second) / np.float32(target)))


def column(x: ArrayLike, kernel: ArrayLike, scale: Multiplier) -> Ints:
    """What each filter of features makes of x, which is less its zero point: the newest column of the state."""
    return saturate(requantize(wrapped(ints(x) @ ints(kernel)), *scale), *INT16)


def result(state: ArrayLike, times: ArrayLike, bias: ArrayLike, rank: int, scale: Multiplier) -> Ints:
    """Every `rank` filters of time over the state, added up with a bias; not yet clamped."""
    products = (ints(state) * ints(times)).sum(axis=-1)
    sums = products.reshape(*products.shape[:-1], -1, rank).sum(axis=-1) + ints(bias)
    return requantize(wrapped(sums), *scale)


def wrapped(sums: Ints) -> Ints:
    """The low 32 bits with their sign."""
    return (sums + (1 << 31)) % (1 << 32) - (1 << 31)
