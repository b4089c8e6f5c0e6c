"""Bilinear upsampling in 1024ths of a pixel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.rounding import Ints, ints, rounding_shift

BITS = 10
ONE = 1 << BITS


class Position(NamedTuple):
    """Output i lies at i * step + start of the input, in 1024ths."""

    step: int
    start: int


def position(size: int, factor: int, centred: bool = True) -> Position:
    """The step is rounded, so that it drifts where the factor does not divide 1024, as TFLite's does.

    Pixel centres are at halves, or all pixels at their first corner.
    """
    out = size * factor
    step = (ONE * size + out // 2) // out
    return Position(step, step // 2 - ONE // 2 if centred else 0)


def taps(size: int, factor: int, centred: bool = True) -> tuple[Ints, Ints, Ints]:
    """For each output the lower and the upper input, and the upper one's share.

    C: low = at < 0 ? 0 : at / 1024; high = (at + 1023) / 1024, but size - 1 at most; share = at - 1024 * low
    """
    step, start = position(size, factor, centred)
    at = np.arange(size * factor, dtype=np.int64) * step + start
    low = np.maximum(at, 0) >> BITS
    return low, np.minimum((at + ONE - 1) >> BITS, size - 1), at - (low << BITS)


def bilinear(x: ArrayLike, factors: tuple[int, int], centred: bool = True) -> Ints:
    """[batch, height, width, channels], rounded once, halves away from zero."""
    value = ints(x)
    top, bottom, down = taps(value.shape[1], factors[0], centred)
    left, right, across = taps(value.shape[2], factors[1], centred)
    rows, columns = down[None, :, None, None], across[None, None, :, None]
    upper = value[:, top][:, :, left] * (ONE - columns) + value[:, top][:, :, right] * columns
    lower = value[:, bottom][:, :, left] * (ONE - columns) + value[:, bottom][:, :, right] * columns
    return rounding_shift(upper * (ONE - rows) + lower * rows, 2 * BITS)
