"""exp, reciprocal, logistic, tanh and inverse square root in fixed point.

A number of `bits` (16 or 32) with `integer_bits` before the point stands for raw / 2**(bits - 1 - integer_bits).
Products are rounding high multiplies, so their integer bits add up; bringing a product back to fewer
integer bits is a saturating left shift. Constants are given in 32 bits and rounded for 16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.rounding import (
    Ints,
    high_multiply,
    ints,
    rounding_half_sum,
    rounding_shift,
    saturate,
    saturating_shift_left,
)

# exp(-2**n) for n = -2 … 4, no integer bits.
EXP_FACTORS = {
    -2: 1672461947,
    -1: 1302514674,
    0: 790015084,
    1: 290630308,
    2: 39332535,
    3: 720401,
    4: 242,
}
EXP_MINUS_EIGHTH = 1895147668
ONE_THIRD = 715827883
FORTY_EIGHT_SEVENTEENTHS = 1515870810  # two integer bits
MINUS_THIRTY_TWO_SEVENTEENTHS = -1010580540  # two integer bits
HALF_SQRT_2 = 1518500250
ROOT_OF_HALF_SQRT_2 = 1805811301
LOG_2 = 1488522236

# Of the quotient by which `log_of_sum` comes near the logarithm, without integer bits.
CUBE_ABOVE, SQUARE_BELOW = 117049297, 127690142  # 11/240 and 1/20 of the fourth root of 2
START_BELOW, SLOPE_BELOW = 1057819769, 638450708  # 2 / r - r and r / 4 of that root r


def constant(value: int, bits: int) -> int:
    """A 32-bit constant in a narrower format."""
    return int(rounding_shift(value, 32 - bits))


def largest(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def exp_near_zero(a: ArrayLike, bits: int) -> Ints:
    """exp(a) for a in [-1/4, 0): a Taylor series around -1/8, up to the fourth power. No integer bits."""
    x = ints(a) + (1 << (bits - 4))
    x2 = high_multiply(x, x, bits)
    x3 = high_multiply(x2, x, bits)
    x4_over_4 = rounding_shift(high_multiply(x2, x2, bits), 2)
    higher = high_multiply(x4_over_4 + x3, constant(ONE_THIRD, bits), bits)
    tail = rounding_shift(higher + x2, 1)
    term = constant(EXP_MINUS_EIGHTH, bits)
    return saturate(term + high_multiply(x + tail, term, bits), -largest(bits) - 1, largest(bits))


def exp_of_negative(a: ArrayLike, integer_bits: int, bits: int = 32) -> Ints:
    """exp(a) for a <= 0, result without integer bits; exp(0) is the largest number.

    The part within a quarter is computed by the series; every higher bit multiplies by one factor.
    """
    value, fraction_bits = ints(a), bits - 1 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (value & (quarter - 1)) - quarter
    result = exp_near_zero(saturating_shift_left(rest, integer_bits, bits), bits)
    remaining = rest - value
    for exponent, factor in EXP_FACTORS.items():
        if integer_bits > exponent:
            scaled = high_multiply(result, constant(factor, bits), bits)
            result = np.where(remaining & (1 << (fraction_bits + exponent)), scaled, result)
    if integer_bits > 5:  # the factors end at exp(-16): below -32 the result is zero
        result = np.where(value < constant(-(1 << (36 - integer_bits)), bits), 0, result)
    return np.where(value == 0, largest(bits), result)


def _reciprocal_of_half_sum(a: ArrayLike, bits: int) -> Ints:
    """2 / (1 + a) for a in [0, 1], with two integer bits: three Newton-Raphson steps."""
    half = rounding_half_sum(a, largest(bits))
    x = constant(FORTY_EIGHT_SEVENTEENTHS, bits) + high_multiply(
        half, constant(MINUS_THIRTY_TWO_SEVENTEENTHS, bits), bits
    )
    one = 1 << (bits - 3)
    for _ in range(3):
        error = one - high_multiply(half, x, bits)
        x = x + saturating_shift_left(high_multiply(x, error, bits), 2, bits)
    return x


def one_over_one_plus(a: ArrayLike, bits: int = 32) -> Ints:
    """1 / (1 + a) for a in [0, 1], no integer bits."""
    return saturating_shift_left(_reciprocal_of_half_sum(a, bits), 1, bits)


def one_minus_over_one_plus(a: ArrayLike, bits: int = 32) -> Ints:
    """(1 - a) / (1 + a) for a in [0, 1], no integer bits."""
    return saturating_shift_left(_reciprocal_of_half_sum(a, bits) - (1 << (bits - 3)), 2, bits)


def logistic(a: ArrayLike, integer_bits: int, bits: int = 32) -> Ints:
    """1 / (1 + exp(-a)), no integer bits; exactly one half at zero."""
    value = ints(a)
    positive = one_over_one_plus(exp_of_negative(-np.abs(value), integer_bits, bits), bits)
    signed = np.where(value > 0, positive, largest(bits) - positive)
    return np.where(value == 0, 1 << (bits - 2), signed)


def tanh(a: ArrayLike, integer_bits: int, bits: int = 32) -> Ints:
    """tanh(a), no integer bits. The doubling of a costs nothing: it is one more integer bit."""
    value = ints(a)
    size = one_minus_over_one_plus(exp_of_negative(-np.abs(value), integer_bits + 1, bits), bits)
    return np.where(value == 0, 0, np.sign(value) * size)


def leading_zeros32(x: ArrayLike) -> Ints:
    """The number of leading zeros in 32 bits. C: x ? __builtin_clz(x) : 32"""
    _, exponent = np.frexp(ints(x).astype(np.float64))
    return 32 - ints(exponent)


def reciprocal(x: ArrayLike, integer_bits: int) -> tuple[Ints, Ints]:
    """1 / x for x > 0 in 32 bits: a mantissa without integer bits, and the right shift to apply."""
    value = ints(x)
    headroom = leading_zeros32(value)
    mantissa = one_over_one_plus((value << headroom) - (1 << 31))
    return mantissa, integer_bits - headroom


def log_of_sum(x: ArrayLike, integer_bits: int) -> Ints:
    """log(x) with five integer bits, for x >= 1 of so many integer bits.

    x is brought next to the fourth root of 1/2 by a power of the root of 2: of two numbers an odd and an even power
    apart, the smaller one. Near there the logarithm is a quotient of polynomials. C: nn_log_of_sum, for 12 bits
    """
    value, quarter = ints(x), 1 << 23
    zeros = leading_zeros32(value) - 1
    even = saturating_shift_left(high_multiply(value << zeros, HALF_SQRT_2), 1, 32)
    zeros_odd = leading_zeros32(high_multiply(value, HALF_SQRT_2)) - 1
    near = np.minimum(even, saturating_shift_left(value, zeros_odd, 32))
    power = np.maximum(
        ((integer_bits - zeros - 1) << 25) + quarter,
        ((integer_bits - zeros_odd) << 25) - quarter,
    )
    away = 2 * (near - ROOT_OF_HALF_SQRT_2)
    square = high_multiply(away, away)
    above = high_multiply(away, near) + high_multiply(high_multiply(away, square), CUBE_ABOVE)
    slope = START_BELOW + away + high_multiply(SQUARE_BELOW, square)
    below = high_multiply(rounding_half_sum(near, ROOT_OF_HALF_SQRT_2), slope) + high_multiply(SLOPE_BELOW, away)
    rest = high_multiply(rounding_shift(above, 6), one_over_one_plus(below))
    return saturating_shift_left(high_multiply(power, LOG_2) + rest, 1, 32)


def inverse_square_root(x: ArrayLike) -> tuple[Ints, Ints]:
    """1 / sqrt(x) of a 32-bit integer x >= 1 as a multiplier and a shift, for `requantize`.

    x is scaled by powers of four into [2**27, 2**29), then five Newton-Raphson steps with three
    integer bits. Zero counts as one.
    """
    value = np.maximum(ints(x), 1)
    shift = np.full(value.shape, 11, np.int64)
    for _ in range(2):
        large = value >= 1 << 29
        value, shift = np.where(large, value >> 2, value), shift + large
    pairs = (leading_zeros32(value) - 1) // 2 - 1
    value, shift = value << (2 * pairs), shift - pairs
    half_input = rounding_shift(value >> 1, 1)
    root = np.full(value.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = saturating_shift_left(high_multiply(high_multiply(root, root), root), 6, 32)
        step = high_multiply((1 << 28) + (1 << 27), root) - high_multiply(half_input, cube)
        root = saturating_shift_left(step, 3, 32)
    root = high_multiply(root, HALF_SQRT_2)
    root, shift = root << np.maximum(-shift, 0), np.maximum(shift, 0)
    unit = ints(x) <= 1
    return np.where(unit, largest(32), root), np.where(unit, 0, -shift)
