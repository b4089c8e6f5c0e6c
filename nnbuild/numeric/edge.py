"""Float values in and out of a quantised model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import Ints, ints, saturate


def quantize(x: ArrayLike, scale: float, zero_point: int, low: int, high: int) -> Ints:
    """Float32 division by the scale, halves away from zero, plus the zero point, saturated.

    Infinities saturate; a NaN is refused by the caller before it comes here.
    C: float q = x / scale; q = q < 0 ? ceilf(q - 0.5f) : floorf(q + 0.5f) with the halves made exact
    """
    with np.errstate(over="ignore"):
        quotient = np.asarray(x, np.float32) / np.float32(scale)
    bounded = np.clip(quotient.astype(np.float64), low - zero_point - 1.0, high - zero_point + 1.0)
    return saturate(round_half_away(bounded).astype(np.int64) + zero_point, low, high)


class ScaleParts(NamedTuple):
    """A scale as 24 bits of mantissa times 2^(exponent - 167), and 2^55 / mantissa in 32 bits."""

    mantissa: int
    inverse: int
    exponent: int


EXPONENTS = range(32, 251)
"""Of scales that floats are divided and multiplied by without floats."""


def scale_parts(scale: float) -> ScaleParts:
    bits = int(np.float32(scale).view(np.uint32))
    mantissa = bits & 0x7FFFFF | 0x800000
    return ScaleParts(mantissa, min((1 << 55) // mantissa, (1 << 32) - 1), (bits >> 23) + 17)


def dequantize(q: ArrayLike, scale: float, zero_point: int) -> NDArray[np.float32]:
    """C: (float)(q - zero_point) * scale"""
    return np.asarray((ints(q) - zero_point).astype(np.float32) * np.float32(scale))
