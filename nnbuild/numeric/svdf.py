"""TFLite's 8-bit feature and time filters; the results of feature filters enter a 16-bit state.

As in TFLite, sums have 32 bits: larger ones lose their upper bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import INT16, Ints, ints, requantize, saturate


def scale_between(first: float, second: float, target: float) -> Multiplier:
    """The multiplier from products of two scales to a third, computed in floats like TFLite's."""
    return quantize_multiplier(float(np.float32(first) * np.float32(second) / np.float32(target)))


def column(x: ArrayLike, kernel: ArrayLike, scale: Multiplier) -> Ints:
    """The results of the feature filters for x, which is less its zero point: the newest column of the state."""
    return saturate(requantize(wrapped(ints(x) @ ints(kernel)), *scale), *INT16)


def result(state: ArrayLike, times: ArrayLike, bias: ArrayLike, rank: int, scale: Multiplier) -> Ints:
    """Sums of `rank` time filters each over the state, plus a bias; not clamped yet."""
    products = (ints(state) * ints(times)).sum(axis=-1)
    sums = products.reshape(*products.shape[:-1], -1, rank).sum(axis=-1) + ints(bias)
    return requantize(wrapped(sums), *scale)


def wrapped(sums: Ints) -> Ints:
    """The low 32 bits, signed."""
    return (sums + (1 << 31)) % (1 << 32) - (1 << 31)
