"""The arithmetic of operators that treat one element at a time.

A function takes integer tensors of any shape (numpy broadcasting applies), the zero points and the
constants made for it here, and returns unsaturated or clamped integers as its comment says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.fixed_point import inverse_square_root
from nnbuild.numeric.multiplier import (
    Multiplier,
    WideScale,
    product_scale,
    quantize_multiplier,
    ratio_scale,
    ratio_scale32,
    wide_scale,
)
from nnbuild.numeric.rounding import (
    Ints,
    high_multiply,
    ints,
    reduced_multiplier,
    requantize,
    rounding_shift,
    saturate,
    saturating_shift_left,
    scale_wide,
    truncating_high_multiply16,
)

DIVISION_LIMIT = 1 << 16


class AddScales(NamedTuple):
    """ADD's and SUB's constants: both inputs are scaled to twice the larger scale, with spare bits below."""

    left_shift: int
    first: Multiplier
    second: Multiplier
    output: Multiplier


def spare_bits(bits: int) -> int:
    """20 for 8-bit tensors, 15 for 16-bit ones, so that a sum fits 32."""
    return 20 if bits == 8 else 15


def sum_limit(bits: int) -> float:
    """Twice the larger scale of the operands must be less than this many output scales: otherwise TFLite's own
    multiplier would be no fraction, which it refuses, and sums would leave their 32 bits."""
    return 2.0 ** spare_bits(bits)


def add_scales(first: float, second: float, output: float, bits: int) -> AddScales:
    left_shift = spare_bits(bits)
    twice = 2.0 * max(float(first), float(second))
    return AddScales(
        left_shift,
        quantize_multiplier(float(first) / twice),
        quantize_multiplier(float(second) / twice),
        quantize_multiplier(twice / ((1 << left_shift) * float(output))),
    )


def _aligned(x: ArrayLike, zero: int, scales: AddScales, own: Multiplier) -> Ints:
    return requantize((ints(x) - zero) << scales.left_shift, *own)


def add(a: ArrayLike, b: ArrayLike, zeros: tuple[int, int, int], scales: AddScales) -> Ints:
    """a + b, not clamped yet. C: requantize(requantize(a - za << 20, …) + requantize(b - zb << 20, …), …) + zo"""
    total = _aligned(a, zeros[0], scales, scales.first) + _aligned(b, zeros[1], scales, scales.second)
    return requantize(total, *scales.output) + zeros[2]


def subtract(a: ArrayLike, b: ArrayLike, zeros: tuple[int, int, int], scales: AddScales) -> Ints:
    """a - b, not clamped yet, like `add`."""
    total = _aligned(a, zeros[0], scales, scales.first) - _aligned(b, zeros[1], scales, scales.second)
    return requantize(total, *scales.output) + zeros[2]


def squared_difference_scales(first: float, second: float, output: float) -> AddScales:
    """SQUARED_DIFFERENCE's constants: 7 spare bits, so that the square fits 32."""
    twice = 2.0 * max(float(first), float(second))
    return AddScales(
        7,
        quantize_multiplier(float(first) / twice),
        quantize_multiplier(float(second) / twice),
        quantize_multiplier(twice * twice / ((1 << 14) * float(output))),
    )


def wide_square_scale(first: float, second: float, output: float) -> WideScale:
    """The same for 16-bit tensors, which TFLite does not have: the square takes 46 bits."""
    twice = 2.0 * max(float(first), float(second))
    return wide_scale(twice * twice / ((1 << 14) * float(output)))


def squared_difference(
    a: ArrayLike, b: ArrayLike, zeros: tuple[int, int, int], scales: AddScales, wide: WideScale | None = None
) -> Ints:
    """(a - b) ** 2, not clamped yet; 16-bit tensors need `wide`."""
    difference = _aligned(a, zeros[0], scales, scales.first) - _aligned(b, zeros[1], scales, scales.second)
    if wide is not None:
        return scale_wide(difference * difference, *wide) + zeros[2]
    return requantize(difference * difference, *scales.output) + zeros[2]


def multiply(a: ArrayLike, b: ArrayLike, zeros: tuple[int, int, int], scale: Multiplier) -> Ints:
    """a * b, not clamped yet; the scale is that of `product_scale`."""
    return requantize((ints(a) - zeros[0]) * (ints(b) - zeros[1]), *scale) + zeros[2]


class DivisionScale(NamedTuple):
    """The real number multiplier / 2**right."""

    multiplier: int
    right: int


def division_scale(first: float, second: float, output: float) -> DivisionScale:
    """`divide`'s constant. Above 2**30 every quotient saturates, below 2**-16 every one is zero."""
    scale = quantize_multiplier(min(float(first) / (float(second) * float(output)), 2.0**30))
    right = 31 - scale.shift
    return DivisionScale(scale.multiplier, right) if right <= 47 else DivisionScale(0, 0)


def divide(a: ArrayLike, b: ArrayLike, zeros: tuple[int, int, int], scale: DivisionScale) -> Ints:
    """a / b, rounded once, halves away from zero, not clamped yet: TFLite's DIV, where that is defined.

    Division by zero gives a number beyond any clamp, with the sign of a; 0 / 0 is 0.
    C: (|a| * multiplier + (|b| << right) / 2) / (|b| << right) with the sign of a * b
    """
    top, bottom = ints(a) - zeros[0], ints(b) - zeros[1]
    below = np.maximum(np.abs(bottom), 1) << scale.right
    size = np.minimum((np.abs(top) * scale.multiplier + below // 2) // below, DIVISION_LIMIT)
    quotient = np.where(bottom == 0, np.sign(top) * DIVISION_LIMIT, np.sign(top) * np.sign(bottom) * size)
    return quotient + zeros[2]


def rescale(x: ArrayLike, in_zero: int, out_zero: int, scale: Multiplier) -> Ints:
    """From one scale to another, not clamped yet: QUANTIZE between integers, RELU, concatenation's inputs."""
    return requantize(ints(x) - in_zero, *scale) + out_zero


def rescale_multiplier(in_scale: float, out_scale: float) -> Multiplier:
    """QUANTIZE's constant."""
    return quantize_multiplier(ratio_scale(in_scale, out_scale))


def relu_multiplier(in_scale: float, out_scale: float) -> Multiplier:
    """The constant of RELU, RELU6 and RELU_N1_TO_1 as separate operators."""
    return quantize_multiplier(ratio_scale32(in_scale, out_scale))


class SlopeScales(NamedTuple):
    """LEAKY_RELU's and PRELU's constants on either side of zero."""

    positive: Multiplier
    negative: Multiplier


def leaky_relu_scales(in_scale: float, alpha: float, out_scale: float) -> SlopeScales:
    return SlopeScales(
        quantize_multiplier(ratio_scale32(in_scale, out_scale)),
        quantize_multiplier(product_scale(in_scale, alpha, out_scale)),
    )


def leaky_relu(x: ArrayLike, in_zero: int, out_zero: int, scales: SlopeScales, threshold: int = 0) -> Ints:
    """Not clamped yet. A negative alpha has its sign in the multiplier.

    In TFLite the slope always begins below a threshold of 0.
    """
    value = ints(x) - in_zero
    slope, shift = scales.negative
    negative = requantize(value - threshold, abs(slope), shift) * (-1 if slope < 0 else 1)
    return np.where(value >= threshold, requantize(value, *scales.positive), negative) + out_zero


def prelu_scales(in_scale: float, alpha_scale: float, out_scale: float) -> SlopeScales:
    return leaky_relu_scales(in_scale, alpha_scale, out_scale)


def prelu(x: ArrayLike, alpha: ArrayLike, zeros: tuple[int, int, int], scales: SlopeScales) -> Ints:
    """Not clamped yet; zeros are those of input, alpha and output."""
    value = ints(x) - zeros[0]
    negative = requantize(value * (ints(alpha) - zeros[1]), *scales.negative)
    return np.where(value >= 0, requantize(value, *scales.positive), negative) + zeros[2]


def rsqrt_multiplier(in_scale: float, out_scale: float) -> Multiplier:
    """RSQRT's constant, in float32."""
    return quantize_multiplier(1.0 / float(np.sqrt(np.float32(in_scale)) * np.float32(out_scale)))


def rsqrt(x: ArrayLike, in_zero: int, out_zero: int, scale: Multiplier, high: int) -> Ints:
    """1 / sqrt(x) with 20 more bits between the root and the output's scale, not clamped yet.

    Numbers that are not positive give the largest output.
    """
    value = ints(x) - in_zero
    root, root_shift = inverse_square_root(value)
    fine = requantize(np.ones_like(value), root, root_shift + 20)
    return np.where(value <= 0, high, requantize(fine, scale.multiplier, scale.shift - 20) + out_zero)


class HardSwishScales(NamedTuple):
    """16-bit multipliers with their exponents: to the output's scale, and to 3 / 32768."""

    output: Multiplier
    reluish: Multiplier


def hard_swish_scales(in_scale: float, out_scale: float) -> HardSwishScales:
    fine = np.float32(1.0 / 128.0) * np.float32(in_scale)
    output = quantize_multiplier(float(fine / np.float32(out_scale)))
    reluish = quantize_multiplier(float(fine / (np.float32(3.0) / np.float32(32768.0))))
    return HardSwishScales(
        Multiplier(int(reduced_multiplier(output.multiplier)), output.shift),
        Multiplier(int(reduced_multiplier(reluish.multiplier)), reluish.shift),
    )


def hard_swish(x: ArrayLike, in_zero: int, out_zero: int, scales: HardSwishScales) -> Ints:
    """x * relu6(x + 3) / 6 in 16-bit steps, not clamped yet. The output exponent must not be positive."""
    fine = (ints(x) - in_zero) << 7
    on_output_scale = high_multiply(fine, scales.output.multiplier, 16)
    exponent = scales.reluish.shift
    gate = saturating_shift_left(fine, max(exponent - 1, 0), 16)
    gate = high_multiply(gate, scales.reluish.multiplier, 16)
    gate = saturating_shift_left(gate, 1, 16) if exponent > 0 else rounding_shift(gate, -exponent)
    gate = (gate + (1 << 15)) >> 1  # from [-1, 1] to [0, 1]
    product = truncating_high_multiply16(gate, on_output_scale)
    return rounding_shift(product, -scales.output.shift) + out_zero


def mean_multiplier(scale: Multiplier, count: int) -> Multiplier:
    """MEAN's constant: the division by the count is part of the multiplier, truncated."""
    shift = min(count.bit_length() - 1, 32, 31 + scale.shift)
    return Multiplier((scale.multiplier << shift) // count, scale.shift - shift)


def mean(total: ArrayLike, count: int, in_zero: int, out_zero: int, scale: Multiplier) -> Ints:
    """MEAN from the sum of the raw inputs, not clamped yet; the multiplier is `mean_multiplier`'s.

    SUM is the same with the plain multiplier.
    """
    return requantize(ints(total) - count * in_zero, *scale) + out_zero


def clamp(x: ArrayLike, bounds: tuple[int, int]) -> Ints:
    """The fused activation's clamp, which is also the saturation to the output's type."""
    return saturate(x, *bounds)
