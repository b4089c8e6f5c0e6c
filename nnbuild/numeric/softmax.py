"""Softmax over the last axis: 8-bit input through a fixed-point exp, 16-bit input through tables. Its logarithm in
8 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.fixed_point import exp_of_negative, leading_zeros32, log_of_sum, reciprocal
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import (
    INT8,
    INT16,
    Ints,
    half_up_shift,
    high_multiply,
    ints,
    requantize,
    rounding_shift,
    saturate,
)
from nnbuild.numeric.tables import lookup16, table16

DIFF_INTEGER_BITS = 5
SUM_INTEGER_BITS = 12
LOG_INTEGER_BITS = 4
EXP_RANGE = 10.0  # of the 16-bit table; exp(-10) counts as 0


class Softmax8(NamedTuple):
    """The constants of an 8-bit softmax: differences below `diff_min` give zero."""

    scale: Multiplier
    diff_min: int


def softmax8_constants(in_scale: float, beta: float = 1.0) -> Softmax8:
    real = min(float(np.float32(beta)) * float(np.float32(in_scale)) * (1 << (31 - DIFF_INTEGER_BITS)), 2.0**31 - 1)
    scale = quantize_multiplier(real)
    radius = ((1 << DIFF_INTEGER_BITS) - 1) * 2.0 ** (31 - DIFF_INTEGER_BITS) / 2.0**scale.shift
    return Softmax8(scale, -int(np.floor(radius)))


def softmax8(x: ArrayLike, constants: Softmax8, out_bits: int = 8) -> Ints:
    """8-bit input, 8- or 16-bit output; the output's scale is 2**-out_bits, its zero point the smallest number."""
    counted, _, powers, total = _powers8(x, constants)
    inverse, over_unit = reciprocal(total, SUM_INTEGER_BITS)
    low, high = -(1 << (out_bits - 1)), (1 << (out_bits - 1)) - 1
    result = rounding_shift(high_multiply(inverse, powers), over_unit + 31 - out_bits) + low
    return np.where(counted, saturate(result, low, high), low)


def log_softmax8(x: ArrayLike, constants: Softmax8) -> Ints:
    """8-bit input and output, the output's scale is 2**-4, its zero point the largest number."""
    counted, scaled, _, total = _powers8(x, constants)
    share = scaled - log_of_sum(total, SUM_INTEGER_BITS)
    result = rounding_shift(share, 31 - DIFF_INTEGER_BITS - LOG_INTEGER_BITS) + INT8[1]
    return np.where(counted, saturate(result, *INT8), INT8[0])


def _powers8(x: ArrayLike, constants: Softmax8) -> tuple[NDArray[np.bool_], Ints, Ints, Ints]:
    """Where the difference to the largest number counts, this difference, its exp, and the sum of these."""
    value = ints(x)
    diff = value - value.max(axis=-1, keepdims=True)
    counted = diff >= constants.diff_min
    scaled = high_multiply(np.where(counted, diff, 0) << constants.scale.shift, constants.scale.multiplier)
    powers = np.where(counted, exp_of_negative(scaled, DIFF_INTEGER_BITS), 0)
    return counted, scaled, powers, rounding_shift(powers, SUM_INTEGER_BITS).sum(axis=-1, keepdims=True)


def exp_table16() -> Ints:
    """exp over [-10, 0] at 2**-15."""
    return table16(np.exp, -EXP_RANGE, 0.0, *_unit())


def reciprocal_table16() -> Ints:
    """1 / (1 + x) over [0, 1] at 2**-15."""
    return table16(lambda x: 1.0 / (1.0 + x), 0.0, 1.0, *_unit())


def _unit() -> tuple[float, float]:
    step = 2.0 / 65535
    return step * INT16[0], step * INT16[1]


def softmax16_multiplier(in_scale: float, beta: float = 1.0) -> Multiplier:
    """Scales differences in [-10, 0] to [-65535, 0]."""
    return quantize_multiplier(float(np.float32(in_scale) * np.float32(beta)) / (EXP_RANGE / 65535.0))


def softmax16(x: ArrayLike, scale: Multiplier) -> Ints:
    """16-bit input and output, output scale 2**-15."""
    value = ints(x)
    diff = requantize(value - value.max(axis=-1, keepdims=True), *scale)
    powers = lookup16(saturate(diff + INT16[1], *INT16), exp_table16())
    total = powers.sum(axis=-1, keepdims=True)
    headroom = leading_zeros32(total)
    fraction = half_up_shift(total << (headroom - 1), 14) - ((1 << 15) + (1 << 16))
    inverse = lookup16(saturate(fraction, *INT16), reciprocal_table16())
    return saturate(half_up_shift(powers * inverse, 31 - headroom), 0, INT16[1])
