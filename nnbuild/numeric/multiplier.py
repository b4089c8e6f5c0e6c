"""From real scales to integer constants for C. All of it runs at build time.

A scale is the float32 of the model file. Whether TFLite computes a product of scales in float32 or float64 depends on
the operator, so each has its function here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.rounding import Ints, ints

# An activation's scale below this (that of a relu that never saw a positive number) would need shifts
# and clamps beyond 32 bits, whose results are undefined in TFLite. Importers refuse such a scale.
SMALLEST_SCALE = 2.0**-28

# Sums of products are scaled by less than this; otherwise a 16-bit multiplier would have to be shifted to the left.
SUM_SCALE_LIMIT = 2.0**14

RELU_RANGES: dict[str, tuple[float | None, float | None]] = {
    "none": (None, None),
    "relu": (0.0, None),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
}


class Multiplier(NamedTuple):
    """The real number multiplier * 2**(shift - 31); multiplier is 0 or in [2**30, 2**31)."""

    multiplier: int
    shift: int


def quantize_multiplier(real: float) -> Multiplier:
    """The nearest 31-bit multiplier; scales below 2**-32 become zero, like a dead channel's."""
    if real == 0.0:
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    fixed = math.floor(abs(fraction) * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    if shift < -31:
        return Multiplier(0, 0)
    return Multiplier(fixed if fraction > 0 else -fixed, shift)


class WideScale(NamedTuple):
    """The real number multiplier / 2**right, for `rounding.scale_wide`."""

    multiplier: int
    right: int


def wide_scale(real: float, bits: int = 15) -> WideScale:
    """The nearest multiplier of `bits` bits; scales below 2**-47 become zero, those from 2**(bits - 1) are clamped.

    A small number has fewer bits, so that the shift stays below 63.
    """
    fraction, exponent = math.frexp(real)
    bits = min(bits, 62 + exponent)
    if real == 0.0 or exponent < -47:
        return WideScale(0, 1)
    multiplier = math.floor(fraction * 2**bits + 0.5)
    if multiplier == 2**bits:
        multiplier, exponent = multiplier // 2, exponent + 1
    return WideScale(multiplier, bits - exponent) if exponent < bits else WideScale(2**bits - 1, 1)


def quantize_multipliers(reals: ArrayLike) -> tuple[Ints, Ints]:
    """The multipliers and shifts of many scales."""
    pairs = [quantize_multiplier(float(r)) for r in np.ravel(np.asarray(reals, np.float64))]
    return ints([p.multiplier for p in pairs]), ints([p.shift for p in pairs])


def convolution_scales(input_scale: float, weight_scales: ArrayLike, output_scale: float) -> NDArray[np.float64]:
    """The real multiplier of each channel of a convolution or FULLY_CONNECTED: all in float64."""
    return np.float64(input_scale) * np.asarray(weight_scales, np.float64) / np.float64(output_scale)


def product_scale(first: float, second: float, output_scale: float) -> float:
    """The real multiplier of MUL, LEAKY_RELU's and PRELU's negative side: all in float32."""
    return float(np.float32(first) * np.float32(second) / np.float32(output_scale))


def ratio_scale(input_scale: float, output_scale: float) -> float:
    """The real multiplier of QUANTIZE and MEAN between integers: a float64 quotient."""
    return float(np.float64(input_scale) / np.float64(output_scale))


def ratio_scale32(input_scale: float, output_scale: float) -> float:
    """The real multiplier of RELU, LEAKY_RELU's and PRELU's positive side: a float32 quotient."""
    return float(np.float32(input_scale) / np.float32(output_scale))


def round_half_away(x: ArrayLike) -> NDArray[np.float64]:
    """C's round(): to nearest, halves away from zero. The difference x - trunc(x) is exact."""
    value = np.asarray(x, np.float64)
    whole = np.trunc(value)
    return np.asarray(whole + np.sign(value) * (np.abs(value - whole) >= 0.5))


def quantized_bound(real: float, scale: float, zero_point: int) -> int:
    """An activation bound as an integer: float32 quotient, rounded, plus the zero point. One beyond all integers of a
    model is as good as any other such."""
    with np.errstate(over="ignore"):
        steps = np.float32(real) / np.float32(scale)
    return zero_point + int(round_half_away(np.clip(steps, -(2.0**40), 2.0**40)))


def activation_range(activation: str, scale: float, zero_point: int, low: int, high: int) -> tuple[int, int]:
    """The clamp of a fused or separate relu, within the limits of the output's type."""
    real_low, real_high = RELU_RANGES[activation]
    if real_low is not None:
        low = max(low, quantized_bound(real_low, scale, zero_point))
    if real_high is not None:
        high = min(high, quantized_bound(real_high, scale, zero_point))
    return low, high


def is_power_of_two(scale: float) -> tuple[bool, int]:
    """Whether a scale counts as a power of two (within 0.1 % of an octave), and its rounded logarithm.

    TFLite takes the logarithm in float32.
    """
    logarithm = np.float32(np.log(np.float32(scale))) * np.float32(np.float32(1.0) / np.float32(np.log(np.float32(2))))
    rounded = round_half_away(logarithm)
    return bool(abs(float(logarithm) - float(rounded)) < 1e-3), int(rounded)
