"""Shifts, high multiplies and the requantization of an accumulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

INT8 = (-128, 127)
INT16 = (-32768, 32767)
INT32 = (-(2**31), 2**31 - 1)


def ints(x: ArrayLike) -> Ints:
    """The argument as 64-bit integers, in which every rule computes."""
    return np.asarray(x, dtype=np.int64)


def limits(dtype: Any) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def saturate(x: ArrayLike, low: int, high: int) -> Ints:
    """C: x < low ? low : x > high ? high : x"""
    return np.minimum(np.maximum(ints(x), low), high)  # for a few numbers much faster than np.clip


def wrap(x: ArrayLike, bits: int) -> Ints:
    """The low `bits` bits as a signed number. C: (int32_t)(uint32_t)x"""
    half = 1 << (bits - 1)
    return ((ints(x) + half) & ((1 << bits) - 1)) - half


def int32s(x: ArrayLike) -> NDArray[np.int32]:
    """The low 32 bits, as an int32 array."""
    return wrap(x, 32).astype(np.int32)


def rounding_shift(x: ArrayLike, amount: ArrayLike) -> Ints:
    """Divides by 2**amount, to nearest, halves away from zero.

    C: amount == 0 ? x : (x + (1 << (amount - 1)) - (x < 0)) >> amount
    """
    value, shift = ints(x), ints(amount)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    return np.where(shift > 0, (value + half - (value < 0)) >> shift, value)


def half_up_shift(x: ArrayLike, amount: ArrayLike) -> Ints:
    """Divides by 2**amount (at least 1), to nearest, halves up. C: (x + (1 << (amount - 1))) >> amount"""
    value, shift = ints(x), ints(amount)
    return np.asarray((value + (np.int64(1) << (shift - 1))) >> shift)


def high_multiply(a: ArrayLike, b: ArrayLike, bits: int = 32) -> Ints:
    """Saturating rounding doubling high multiply: a * b / 2**(bits - 1), to nearest, halves up.

    Only the product of the two most negative numbers does not fit; it gives the largest number.
    C: (int32_t)(((int64_t)a * b + (1 << 30)) >> 31)
    """
    product = ints(a) * ints(b)
    return np.minimum(half_up_shift(product, bits - 1), (1 << (bits - 1)) - 1)


def truncating_high_multiply16(a: ArrayLike, b: ArrayLike) -> Ints:
    """a * b / 2**15 towards zero, saturated to 16 bits. C: (int32_t)a * b / 32768"""
    product = ints(a) * ints(b)
    return np.asarray(np.minimum(np.sign(product) * (np.abs(product) >> 15), INT16[1]))


def saturating_shift_left(x: ArrayLike, amount: ArrayLike, bits: int) -> Ints:
    """x * 2**amount, saturated to `bits` bits."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return saturate(ints(x) << ints(amount), low, high)


def rounding_half_sum(a: ArrayLike, b: ArrayLike) -> Ints:
    """(a + b) / 2, halves away from zero. C: (a + b + (a + b >= 0 ? 1 : -1)) / 2"""
    return rounding_shift(ints(a) + ints(b), 1)


def fit_bytes(values: ArrayLike) -> bool:
    return bool((saturate(values, *INT8) == ints(values)).all())


def narrowest(values: ArrayLike) -> NDArray[np.integer[Any]]:
    """In 8 bits where they fit, otherwise in 16."""
    return ints(values).astype(np.int8 if fit_bytes(values) else np.int16)


def requantize(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Ints:
    """Scales a 32-bit accumulator by multiplier * 2**(shift - 31), rounding twice.

    The rule of CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, ADD, MUL, MEAN and nearly all others. A left
    shift keeps the low 32 bits, as TFLite's does.
    C: rounding_shift(high_multiply(acc << left, multiplier), right)
    """
    amount = ints(shift)
    widened = wrap(ints(acc) << np.maximum(amount, 0), 32)
    return rounding_shift(high_multiply(widened, multiplier), np.maximum(-amount, 0))


def requantize_once(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Ints:
    """Scales a 32-bit accumulator by multiplier * 2**(shift - 31), rounding once, halves up.

    C: ((int64_t)acc * multiplier + ((int64_t)1 << (30 - shift))) >> (31 - shift)
    """
    return half_up_shift(ints(acc) * ints(multiplier), 31 - ints(shift))


def requantize64(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Ints:
    """Scales a 48-bit accumulator, the rule of 16-bit activations with 64-bit bias.

    The multiplier is first rounded to 16 bits so that the product fits 64. The result keeps 32 bits.
    C: (int32_t)((acc * reduced + ((int64_t)1 << (14 - shift))) >> (15 - shift))
    """
    return wrap(half_up_shift(ints(acc) * reduced_multiplier(multiplier), 15 - ints(shift)), 32)


def reduced_multiplier(multiplier: ArrayLike) -> Ints:
    """A 32-bit multiplier rounded to 16 bits, held below 2**15. Build time."""
    return np.minimum(half_up_shift(multiplier, 16), INT16[1])


def rounding_mean(total: ArrayLike, count: ArrayLike, upward: bool = False) -> Ints:
    """An average pool's division: to nearest, halves away from zero or upward.

    C: total > 0 ? (total + count / 2) / count : (total - count / 2) / count
    """
    value, number = ints(total), ints(count)
    if upward:
        return (value + number // 2) // number
    return np.asarray(np.sign(value) * ((np.abs(value) + number // 2) // number))


def scale_wide(acc: ArrayLike, multiplier: ArrayLike, right: ArrayLike) -> Ints:
    """acc * multiplier / 2**right, rounded once, halves up, clamped to 2**30: for operators TFLite does not have.

    The multiplier has 16 bits, the accumulator 48, or otherwise 63 together.
    C: (acc * multiplier + ((int64_t)1 << (right - 1))) >> right
    """
    return saturate(half_up_shift(ints(acc) * ints(multiplier), right), -(1 << 30), 1 << 30)
