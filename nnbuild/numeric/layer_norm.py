"""Layer normalization in integers; TFLite has no integer form of it.

The mean and the variance are those of the integers, with `fraction` more bits; the scale of the input cancels except in
epsilon. A normalized value has 16 fraction bits, a factor 16 bits in all, and a summand 8 fraction bits less than their
product. One rounding scales the sum to the output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.fixed_point import inverse_square_root
from nnbuild.numeric.multiplier import WideScale, wide_scale
from nnbuild.numeric.rounding import Ints, half_up_shift, ints, rounding_mean, scale_wide

FRACTION = {8: 10, 16: 6}
POINT = 16
SUMMAND_SHIFT = 8
UNIT = 1 << 15
"""The factor where the layer has none; its scale is 1 / UNIT."""
LARGEST = 1 << 18
"""Values that may be normalized together, so that the squares of 16-bit ones sum up within 63 bits."""


class LayerNormScales(NamedTuple):
    fraction: int
    epsilon: int
    output: WideScale


def layer_norm_scales(
    bits: int, in_scale: float, epsilon: float, factor_scale: float, out_scale: float
) -> LayerNormScales:
    fraction = FRACTION[bits]
    small = min(max(round(epsilon / in_scale**2 * 4.0**fraction), 1), 1 << 61)
    return LayerNormScales(fraction, small, wide_scale(factor_scale / out_scale / 2.0**POINT))


def summand_scale(factor_scale: float) -> float:
    return factor_scale / 2.0 ** (POINT - SUMMAND_SHIFT)


def normalized(x: ArrayLike, scales: LayerNormScales, moved: bool = True) -> Ints:
    """(x - mean) / sqrt(variance + epsilon) over the last axis, with 16 fraction bits; or without the mean.

    The variance drops pairs of bits until it fits 31; the root drops as many single bits.
    """
    value = ints(x) << scales.fraction
    size = value.shape[-1]
    centred = value - rounding_mean(value.sum(axis=-1, keepdims=True), size) if moved else value
    variance = np.square(centred).sum(axis=-1, keepdims=True) // size + scales.epsilon
    pairs = np.zeros_like(variance)
    while np.any(variance >> 31):
        large = (variance >> 31) > 0
        variance, pairs = np.where(large, variance >> 2, variance), pairs + large
    root, shift = inverse_square_root(variance)
    return half_up_shift(centred * root, 31 - POINT + pairs - shift)


def layer_norm(
    x: ArrayLike,
    factor: ArrayLike,
    summand: ArrayLike,
    out_zero: int,
    scales: LayerNormScales,
    moved: bool = True,
) -> Ints:
    """Normalizes x, which is less its zero point, over the last axis; not clamped yet."""
    total = normalized(x, scales, moved) * ints(factor) + (ints(summand) << SUMMAND_SHIFT)
    return scale_wide(total, *scales.output) + out_zero
