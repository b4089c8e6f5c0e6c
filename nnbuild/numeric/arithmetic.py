"""The arithmetic of a device that does not compute like TFLite: width of its sums, scaling and rounding.

`requant` defines it for the reference, for kernels in the device's stead and for the tests of devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.multiplier import quantize_multiplier
from nnbuild.numeric.rounding import Ints, half_up_shift, ints, rounding_shift, saturate, wrap

Rounding = Literal["floor", "half_up", "half_away", "half_even", "chosen", "none"]
ROUNDINGS = ("floor", "half_up", "half_away", "half_even", "chosen")
"""`chosen`: half up, or half away from zero in selected channels."""
SCALES = {"int32x31": 31, "int16x15": 15, "pow2": 0}
"""Form of a multiplier -> its fraction bits. pow2 is a shift only."""


@dataclass(frozen=True)
class Arithmetic:
    """acc_bits: width of a sum, which must not be exceeded. scale: the form of multipliers. per_channel: each output
    channel has a scale. rounding: of the product with the multiplier, and of the shift behind it; if the second is
    "none", both are one step. zero_in, zero_out: whether inputs and outputs may have a zero point. shifts: the least
    and largest power of two of a multiplier. mean: the rounding of averages. spare: bits by which operands of an
    addition are shifted left before scaling."""

    acc_bits: int = 32
    scale: str = "int32x31"
    per_channel: bool = True
    rounding: tuple[Rounding, Rounding] = ("half_up", "half_away")
    zero_in: bool = True
    zero_out: bool = True
    bias_bits: int = 32
    shifts: tuple[int, int] = (-31, 30)
    mean: Rounding = "half_away"
    spare: int = 20

    @property
    def point(self) -> int:
        return SCALES[self.scale]


TFLITE = Arithmetic()
"""TFLite's arithmetic of convolutions, additions and pools."""
EXACT = Arithmetic(rounding=("chosen", "none"))
"""The arithmetic of TFLite's fully connected layers, rounded once, with proven multipliers."""


def shifted(value: ArrayLike, amount: ArrayLike, rounding: Rounding) -> Ints:
    """Divides by 2**amount, amount >= 0."""
    x, n = ints(value), ints(amount)
    if rounding == "half_away":
        return rounding_shift(x, n)
    if rounding == "floor":
        return np.asarray(x >> n)
    half_up = np.where(n > 0, half_up_shift(x, np.maximum(n, 1)), x)
    if rounding != "half_even":
        return np.asarray(half_up)
    tie = (n > 0) & ((x & ((np.int64(1) << n) - 1)) == (np.int64(1) << np.maximum(n - 1, 0)))
    return np.asarray(half_up - (tie & (half_up & 1 == 1)))


def requant(acc: ArrayLike, spec: Arithmetic, multiplier: ArrayLike, shift: ArrayLike) -> Ints:
    """acc * multiplier * 2**(shift - point), rounded like the device.

    With two rounding steps a left shift comes first and keeps 32 bits.
    """
    x, m, s = ints(acc), ints(multiplier), ints(shift)
    first, second = spec.rounding
    if second == "none" or spec.point == 0:
        amount = spec.point - s
        return shifted((x * m) << np.maximum(-amount, 0), np.maximum(amount, 0), first)
    product = shifted(wrap(x << np.maximum(s, 0), 32) * m, spec.point, first)
    return shifted(product, np.maximum(-s, 0), second)


def scaling(real: float, spec: Arithmetic) -> tuple[int, int]:
    """The multiplier and shift nearest to a real scale; scales too small for the device become zero."""
    low, high = spec.shifts
    if real == 0.0:
        return 0, 0
    if spec.point == 0:
        power = round(math.log2(real))
        return (1, min(power, high)) if power >= low else (0, 0)
    multiplier, shift = quantize_multiplier(real)
    if spec.point == 15:
        multiplier = min(int(half_up_shift(multiplier, 16)), (1 << 15) - 1)
    return (multiplier, min(shift, high)) if shift >= low else (0, 0)


def scalings(reals: ArrayLike, spec: Arithmetic) -> tuple[Ints, Ints]:
    """The multipliers and the shifts of many scales."""
    pairs = [scaling(float(real), spec) for real in np.ravel(np.asarray(reals, np.float64))]
    return ints([m for m, _ in pairs]), ints([s for _, s in pairs])


def mean(total: ArrayLike, count: ArrayLike, rounding: Rounding) -> Ints:
    """total / count, rounded."""
    value, number = ints(total), ints(count)
    if rounding == "floor":
        return np.asarray(value // number)
    if rounding == "half_up":
        return np.asarray((2 * value + number) // (2 * number))
    if rounding == "half_even":
        down, rest = value // number, 2 * (value % number)
        return np.asarray(down + ((rest > number) | ((rest == number) & (down & 1 == 1))))
    return np.asarray(np.sign(value) * ((2 * np.abs(value) + number) // (2 * number)))


def added(left: ArrayLike, right: ArrayLike, spec: Arithmetic, scales: tuple[tuple[int, int], ...]) -> Ints:
    """The sum of two operands less their zero points: each scaled to a common scale, then to the output's."""
    parts = [requant(ints(x) << spec.spare, spec, *s) for x, s in zip((left, right), scales[:2], strict=True)]
    return requant(saturate(parts[0] + parts[1], -(1 << 31), (1 << 31) - 1), spec, *scales[2])
