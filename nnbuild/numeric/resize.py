"""The inputs and weights of resized axes, in 1024ths of a pixel and in floats, like TFLite's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.rounding import Ints, ints, rounding_shift

BITS = 10
ONE = 1 << BITS

CENTRES, CORNERS, EDGES = "centres", "corners", "edges"
"""The alignment of both grids: pixels' centres at halves; the first and the last pixels; or the pixels' first edges."""
MODES = (CENTRES, CORNERS, EDGES)


class Taps(NamedTuple):
    """For each output the lower and the upper input, and the upper one's weight."""

    low: Ints
    high: Ints
    share: Ints


def _ratio(size: int, out: int, mode: str) -> tuple[int, int]:
    return (size - 1, out - 1) if mode == CORNERS and out > 1 else (size, out)


def taps(size: int, out: int, mode: str) -> Taps:
    """In 1024ths. As in TFLite the step is rounded, so that positions drift where the sizes do not divide."""
    inputs, outputs = _ratio(size, out, mode)
    step = (ONE * inputs + outputs // 2) // outputs
    at = np.arange(out, dtype=np.int64) * step + (step // 2 - ONE // 2 if mode == CENTRES else 0)
    low = np.maximum(at, 0) >> BITS
    return Taps(low, np.minimum((at + ONE - 1) >> BITS, size - 1), at - (low << BITS))


class Parts(NamedTuple):
    """Like `Taps`, with float32 weights."""

    low: Ints
    high: Ints
    part: NDArray[np.float32]


def parts(size: int, out: int, mode: str) -> Parts:
    """Before the first centre both inputs are the first, so their weights do not matter."""
    inputs, outputs = _ratio(size, out, mode)
    half = 0.5 if mode == CENTRES else 0.0
    at = (np.arange(out) + half) * (inputs / outputs) - half
    low = np.floor(at).astype(np.int64)
    part = np.where(low < 0, 0.0, at - low).astype(np.float32)
    return Parts(np.clip(low, 0, size - 1), np.clip(low + 1, 0, size - 1), part)


def nearest(size: int, out: int, mode: str, centred: bool = False) -> Ints:
    """TFLite's RESIZE_NEAREST_NEIGHBOR, which may combine corners and centres; in float32, as there."""
    inputs, outputs = _ratio(size, out, mode)
    offset = np.float32(0.5 if centred or mode == CENTRES else 0.0)
    at = (np.arange(out, dtype=np.float32) + offset) * (np.float32(inputs) / np.float32(outputs))
    chosen = np.floor(at + np.float32(0.5)) if mode == CORNERS else np.floor(at)
    return np.asarray(np.clip(chosen.astype(np.int64), 0, size - 1))


def bilinear(x: ArrayLike, size: tuple[int, int], mode: str) -> Ints:
    """[batch, height, width, channels], rounded once, halves away from zero."""
    value = ints(x)
    top, bottom, down = taps(value.shape[1], size[0], mode)
    left, right, across = taps(value.shape[2], size[1], mode)
    rows, columns = down[None, :, None, None], across[None, None, :, None]
    upper = value[:, top][:, :, left] * (ONE - columns) + value[:, top][:, :, right] * columns
    lower = value[:, bottom][:, :, left] * (ONE - columns) + value[:, bottom][:, :, right] * columns
    return rounding_shift(upper * (ONE - rows) + lower * rows, 2 * BITS)
