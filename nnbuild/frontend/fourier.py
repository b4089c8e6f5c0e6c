"""Fourier transforms as products by constant cosines and sines; long ones by two factors of the length, with rotations
between."""

from __future__ import annotations

from math import isqrt

import numpy as np

from nnbuild.model.graph import Array

LONGEST = 1 << 16
DIRECT = 1 << 15
"""The largest matrix of a transform that is not computed by two factors."""
WINDOWED = 1 << 19
"""The largest weights of a convolution over windows: larger ones are transforms of frames."""


def factor(length: int) -> int:
    """The largest factor that is not above the other one."""
    return max(n for n in range(1, isqrt(length) + 1) if length % n == 0)


def is_direct(size: int, outs: int, length: int, parts: int) -> bool:
    """Whether a transform of `size` numbers to `outs` ones is a single product."""
    return factor(length) == 1 or min(size, length) * parts * outs * 2 <= DIRECT


def waves(size: int, outs: int, length: int, parts: int, inverse: bool = False) -> Array:
    """[size, parts, 2 * outs]: from a signal's parts to all real parts, then all imaginary ones."""
    angle = 2 * np.pi * (np.outer(np.arange(size), np.arange(outs)) % length) / length
    cosine, sine = np.cos(angle), np.sin(angle) * (-1 if inverse else 1)
    real = np.hstack([cosine, -sine])
    made = real[:, None] if parts == 1 else np.stack([real, np.hstack([sine, cosine])], 1)
    return np.asarray(made / (length if inverse else 1))


def part_by_part(matrix: Array) -> Array:
    """[size, parts, out] as rows for a signal whose parts lie one behind the other."""
    return np.asarray(matrix.swapaxes(0, 1).reshape(-1, matrix.shape[-1]))


def rotations(steps: int, count: int, length: int, inverse: bool = False) -> tuple[Array, Array]:
    """Cosine and sine of the rotation by j * k steps of the whole length, [j, k]."""
    angle = 2 * np.pi * np.outer(np.arange(steps), np.arange(count)) / length
    return np.cos(angle), np.sin(angle) * (-1 if inverse else 1)


def rotations_of_pairs(steps: int, count: int, length: int, inverse: bool = False) -> tuple[Array, Array]:
    """The same for real and imaginary parts side by side, [j, 2, k]: their factors, and those of the other part."""
    cosine, sine = rotations(steps, count, length, inverse)
    straight = np.repeat(cosine[:, None], 2, 1).astype(np.float32)
    return straight, np.stack([sine, -sine], 1).astype(np.float32)
