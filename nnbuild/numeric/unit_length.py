"""Vectors of length one in 8 bits, as TFLite computes L2_NORMALIZATION; the output's scale is 2**-7."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.fixed_point import inverse_square_root
from nnbuild.numeric.rounding import Ints, half_up_shift, ints

POINT = 7
LARGEST = ((1 << 31) - 1) // 255**2
"""How many squares a 32-bit sum holds."""


def unit_length(x: ArrayLike) -> Ints:
    """x less its zero point, by one over the root of its squares' sum over the last axis, rounded once; not clamped."""
    value = ints(x)
    root, shift = inverse_square_root(np.square(value).sum(axis=-1, keepdims=True))
    return half_up_shift(value * root, 31 - POINT - shift)
