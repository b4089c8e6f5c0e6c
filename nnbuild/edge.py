"""Where floats meet a quantised model: how a value enters it, and how one leaves it.

The generated C does the same, operation by operation: float32 division by the scale, rounding half away from zero,
zero point added, saturation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.integer[Any]]


def round_half_away(values: FloatArray) -> FloatArray:
    """To the nearest integer, halves away from zero. Adding 0.5 would round 0.49999997 up."""
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: not a half, and saturated later
        is_up = np.abs(values - whole) >= np.float32(0.5)
    return np.asarray(whole + np.where(is_up, np.copysign(np.float32(1), values), np.float32(0)), np.float32)


def quantize_edge(values: npt.ArrayLike, scale: float, zero_point: int, dtype: npt.DTypeLike) -> IntArray:
    """Float values as the integers of a quantised tensor."""
    limits = np.iinfo(np.dtype(dtype))
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.asarray(values, np.float32) / np.float32(scale)
    # Clamped before the zero point is added: exact, since the limits are small integers in float32.
    steps = np.clip(round_half_away(np.asarray(scaled)), limits.min - zero_point, limits.max - zero_point)
    return np.asarray(steps.astype(np.int32) + np.int32(zero_point), dtype)


def dequantize_edge(values: IntArray, scale: float, zero_point: int) -> FloatArray:
    """The float values that a quantised tensor's integers stand for."""
    return np.asarray(
        (values.astype(np.int32) - np.int32(zero_point)).astype(np.float32) * np.float32(scale), np.float32
    )
