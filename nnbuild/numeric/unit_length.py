"""8-bit L2 normalization, as TFLite computes L2_NORMALIZATION; the output's scale is 2**-7."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.fixed_point import inverse_square_root
from nnbuild.numeric.rounding import Ints, half_up_shift, ints

POINT = 7
LARGEST = ((1 << 31) - 1) // 255**2
"""Squares whose sum fits 32 bits."""


def unit_length(x: ArrayLike) -> Ints:
    """x, less its zero point, divided by the root of the sum of squares over the last axis, rounded once; not
    clamped."""
    value = ints(x)
    root, shift = inverse_square_root(np.square(value).sum(axis=-1, keepdims=True))
    return half_up_shift(value * root, 31 - POINT - shift)
