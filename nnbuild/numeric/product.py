"""The product of many numbers, as TFLite computes REDUCE_PROD: one after the other, each step scaled."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import Ints, ints, requantize64


def product_ratio(in_scale: float, out_scale: float, count: int) -> float:
    """The scale of every step, of which the output's has an equal share."""
    root: float = float(np.float32(out_scale)) ** (1.0 / count)
    return float(np.float32(in_scale)) / root


def product_multiplier(in_scale: float, out_scale: float, count: int) -> Multiplier:
    return quantize_multiplier(product_ratio(in_scale, out_scale, count))


def product(x: ArrayLike, scale: Multiplier) -> Ints:
    """Of numbers less their zero point, along the first axis; not clamped yet. Steps keep their low 32 bits."""
    first, *others = ints(x)
    result = first
    for each in others:
        result = requantize64(result * each, *scale)
    return requantize64(result, *scale)
