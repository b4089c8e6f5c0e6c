"""FFT of real samples in float32, in a fixed order of operations, so that every platform gives the same bits.

Each product and sum is rounded once, none is fused, and the order is that of FFTPACK, on which the transforms of numpy,
SciPy and TensorFlow are based: decimation in time, radix 4, with a final radix 2 where the length requires it. The
transform of a part replaces its samples: the real part of bin k at k, its imaginary part at length - k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Pair = tuple[Floats, Floats]
ROOT_HALF = np.float32(np.sqrt(0.5))


@dataclass(frozen=True)
class Stage:
    """Combines `radix` transforms of this length into one."""

    radix: int
    length: int

    @property
    def whole(self) -> int:
        return self.radix * self.length


def _radix(length: int) -> int:
    """Radix of the last stage for a power of two of samples."""
    return 4 if length.bit_length() % 2 else 2


@cache
def stages(points: int) -> tuple[Stage, ...]:
    """The stages, in order of computation."""
    if points == 1:
        return ()
    radix = _radix(points)
    return (*stages(points // radix), Stage(radix, points // radix))


@cache
def order(points: int) -> tuple[int, ...]:
    """The sample index of each input of the first stage."""

    def part(first: int, step: int, length: int) -> list[int]:
        radix = _radix(length) if length > 1 else 1
        if radix == 1:
            return [first]
        return [i for k in range(radix) for i in part(first + k * step, step * radix, length // radix)]

    return tuple(part(0, 1, points))


@cache
def factors(stage: Stage) -> npt.NDArray[np.float32]:
    """Twiddle factors [bin, part, (cosine, sine)] of the bins from 1 to below half the length."""
    k = np.arange(1, (stage.length + 1) // 2)[:, None] * np.arange(1, stage.radix)
    angles = 2 * np.pi * k / stage.whole
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)


def real_transform(samples: Floats) -> Pair:
    """The bins 0 to half the length of real samples along the last axis."""
    points = samples.shape[-1]
    values = samples[..., list(order(points))].astype(np.float32)
    for stage in stages(points):
        _stage(stage, values.reshape(*samples.shape[:-1], -1, stage.whole))
    re, im = values[..., : points // 2 + 1], np.zeros_like(values[..., : points // 2 + 1])
    im[..., 1:-1] = values[..., : points // 2 : -1]
    return re, im


def _stage(stage: Stage, values: Floats) -> None:
    m = stage.length
    parts = [values[..., i * m : (i + 1) * m].copy() for i in range(stage.radix)]
    first, half = [part[..., 0] for part in parts], [part[..., m // 2] for part in parts]
    lower = slice(1, (m + 1) // 2)
    re, im = [part[..., lower] for part in parts], [part[..., ::-1][..., slice(0, (m + 1) // 2 - 1)] for part in parts]
    table = factors(stage)
    turned = [_turned(re[i], im[i], table[:, i - 1]) for i in range(1, stage.radix)]
    made = _two if stage.radix == 2 else _four
    for place, value in made(m, (re[0], im[0]), turned):
        values[..., place] = value
    for at, value in _first(m, first):
        values[..., at] = value
    for at, value in _half(m, half) if m % 2 == 0 else ():
        values[..., at] = value


def _turned(re: Floats, im: Floats, factor: Floats) -> Pair:
    cosine, sine = factor[:, 0], factor[:, 1]
    return cosine * re + sine * im, cosine * im - sine * re


Placed = Sequence[tuple[slice, Floats]]


def _up(m: int, part: int) -> slice:
    """Indices of bins after the beginning of a part, ascending."""
    return slice(part * m + 1, part * m + (m + 1) // 2)


def _down(m: int, part: int) -> slice:
    """Indices before its end, descending."""
    last = part * m + m - 1
    return slice(last, last - ((m + 1) // 2 - 1), -1)


def _two(m: int, a: Pair, others: Sequence[Pair]) -> Placed:
    ((b_re, b_im),) = others
    return (
        (_up(m, 0), a[0] + b_re),
        (_down(m, 1), b_im + a[1]),
        (_down(m, 0), a[0] - b_re),
        (_up(m, 1), b_im - a[1]),
    )


def _four(m: int, a: Pair, others: Sequence[Pair]) -> Placed:
    (b_re, b_im), (c_re, c_im), (d_re, d_im) = others
    odd_re, turn_re, odd_im, turn_im = d_re + b_re, d_re - b_re, b_im + d_im, b_im - d_im
    even_re, rest_re, even_im, rest_im = a[0] + c_re, a[0] - c_re, a[1] + c_im, a[1] - c_im
    return (
        (_up(m, 0), even_re + odd_re),
        (_down(m, 1), even_re - odd_re),
        (_down(m, 3), odd_im + even_im),
        (_up(m, 2), odd_im - even_im),
        (_up(m, 1), rest_re + turn_im),
        (_down(m, 0), rest_re - turn_im),
        (_down(m, 2), turn_re + rest_im),
        (_up(m, 3), turn_re - rest_im),
    )


def _first(m: int, parts: Sequence[Floats]) -> Sequence[tuple[int, Floats]]:
    """(index, value) for the first element of each part."""
    if len(parts) == 2:
        return (0, parts[0] + parts[1]), (m, parts[0] - parts[1])
    a, b, c, d = parts
    odd, even = d + b, a + c
    return (0, even + odd), (2 * m, even - odd), (m, a - c), (3 * m, d - b)


def _half(m: int, parts: Sequence[Floats]) -> Sequence[tuple[int, Floats]]:
    """(index, value) for the middle element of each part."""
    middle = m // 2
    if len(parts) == 2:
        return ((m + middle, -parts[1]),)
    a, b, c, d = parts
    re, im = ROOT_HALF * (b - d), -ROOT_HALF * (b + d)
    return (
        (middle, a + re),
        (m + middle, a - re),
        (2 * m + middle, im + c),
        (3 * m + middle, im - c),
    )
