"""The matrices of Fourier transforms, and up to which size these are computed by one."""

from __future__ import annotations

from math import isqrt

import numpy as np

from nnbuild.model.graph import Array

LONGEST = 1 << 16
DIRECT = 1 << 15
"""The largest matrix of a transform that is not computed by two factors."""
WINDOWED = 1 << 19
"""The largest weights of a convolution over windows: larger ones are transforms of frames."""


def waves(size: int, outs: int, length: int, parts: int, inverse: bool) -> Array:
    """[size * parts, 2 * outs]: from a signal's parts, side by side, to all real parts, then all imaginary ones."""
    angle = 2 * np.pi * (np.outer(np.arange(size), np.arange(outs)) % length) / length
    cosine, sine = np.cos(angle), np.sin(angle) * (-1 if inverse else 1)
    real = np.hstack([cosine, -sine])
    made = real if parts == 1 else np.stack([real, np.hstack([sine, cosine])], 1)
    return np.asarray(made.reshape(size * parts, 2 * outs) / (length if inverse else 1))


def rotations(steps: int, count: int, length: int, inverse: bool) -> tuple[Array, Array]:
    """[j, k]: cosine and sine of the rotation by j * k steps of the whole length."""
    angle = 2 * np.pi * np.outer(np.arange(steps), np.arange(count)) / length
    return np.cos(angle), np.sin(angle) * (-1 if inverse else 1)


def factor(length: int) -> int:
    """The largest factor that is not above the other one."""
    return max(n for n in range(1, isqrt(length) + 1) if length % n == 0)
