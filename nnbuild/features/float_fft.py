"""The transform of real samples in single floats, in one order of operations: the same bits wherever it is computed.

The order is that of fixed_fft.py, without its divisions: each product and each sum is rounded once, none is fused.
Twice the transform is what comes out; powers of two change no digits, and whoever weighs the bins halves them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from nnbuild.numeric.fixed_fft import Stage, order, stages

Floats = npt.NDArray[np.float32]
Pair = tuple[Floats, Floats]


@cache
def factors(points: int) -> Pair:
    return unit(-2 * np.pi * np.arange(points) / points)


@cache
def split_factors(points: int) -> Pair:
    """For the bins 1 to points / 2."""
    return unit(-np.pi * (np.arange(1, points // 2 + 1) / points + 0.5))


def unit(angles: npt.NDArray[np.float64]) -> Pair:
    """Cosines and sines, exact where they are 0 or 1."""
    re, im = np.cos(angles), np.sin(angles)
    return tuple(np.where(np.abs(part) < 1e-12, 0.0, part).astype(np.float32) for part in (re, im))  # type: ignore[return-value]


def times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def plus(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def real_transform(samples: Floats) -> Pair:
    """Twice the bins 0 to half the length of real samples along the last axis."""
    points = samples.shape[-1] // 2
    re, im = _transform((samples[..., 0::2], samples[..., 1::2]))
    k = np.arange(1, points // 2 + 1)
    p, q = (re[..., k], im[..., k]), (re[..., points - k], -im[..., points - k])
    g, h = plus(p, q), times(minus(p, q), split_factors(points))
    out = np.zeros((2, *samples.shape[:-1], points + 1), np.float32)
    first = re[..., 0] + im[..., 0], re[..., 0] - im[..., 0]
    out[0][..., 0], out[0][..., points] = first[0] + first[0], first[1] + first[1]
    out[0][..., k], out[1][..., k] = plus(g, h)
    low = minus(g, h)
    out[0][..., points - k], out[1][..., points - k] = low[0], -low[1]
    return out[0], out[1]


def _transform(values: Pair) -> Pair:
    shape = values[0].shape
    points, table = shape[-1], factors(shape[-1])
    re, im = (part[..., list(order(points))] for part in values)
    for stage in stages(points):
        blocks = (*shape[:-1], -1, stage.radix, stage.length)
        done = _butterfly(stage, (re.reshape(blocks), im.reshape(blocks)), table)
        re, im = (np.stack([each[i] for each in done], axis=-2).reshape(shape) for i in range(2))
    return re, im


def _butterfly(stage: Stage, parts: Pair, table: Pair) -> list[Pair]:
    k = np.arange(stage.length) * stage.step
    first, *others = ((parts[0][..., i, :], parts[1][..., i, :]) for i in range(stage.radix))
    if stage.length > 1:
        others = [times(each, (table[0][i * k], table[1][i * k])) for i, each in enumerate(others, 1)]
    if stage.radix == 2:
        return [plus(first, others[0]), minus(first, others[0])]
    b, c, e = others
    even, odd, rest, turn = plus(first, c), plus(b, e), minus(first, c), minus(b, e)
    right, left = (rest[0] + turn[1], rest[1] - turn[0]), (rest[0] - turn[1], rest[1] + turn[0])
    return [plus(even, odd), right, minus(even, odd), left]
