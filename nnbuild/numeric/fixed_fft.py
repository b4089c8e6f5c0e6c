"""The Fourier transform of real int16 samples exactly as the microfrontend computes it: every stage divides, every
product is rounded.

A complex transform of half the length on neighbouring pairs, decimated in time, radix 4 and finally 2; then the two
halves are split. `rounded` is the only rounding. Sums wrap in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
ONE = 32767
HALF, QUARTER = ONE // 2, ONE // 4
"""The factors of stages that divide by two and by four."""


@dataclass(frozen=True)
class Stage:
    """Butterflies of `radix` over parts of `length` each; `step` is the distance of neighbouring factors."""

    radix: int
    length: int
    step: int


@cache
def stages(points: int) -> tuple[Stage, ...]:
    """The stages in order of computation."""
    found, length, step = [], points, 1
    while length > 1:
        radix = 4 if length % 4 == 0 else 2
        length //= radix
        found.append(Stage(radix, length, step))
        step *= radix
    return tuple(reversed(found))


@cache
def order(points: int) -> tuple[int, ...]:
    """The source of each point of the first stage."""

    def part(first: int, step: int, length: int) -> list[int]:
        if length == 1:
            return [first]
        radix = 4 if length % 4 == 0 else 2
        return [i for k in range(radix) for i in part(first + k * step, step * radix, length // radix)]

    return tuple(part(0, 1, points))


def unit(angles: npt.NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Cosines and sines as 15-bit numbers."""
    cosines, sines = (np.floor(0.5 + ONE * part(angles)).astype(np.int64) for part in (np.cos, np.sin))
    return cosines, sines


@cache
def factors(points: int) -> tuple[Integers, Integers]:
    return unit(-2 * np.pi * np.arange(points) / points)


@cache
def split_factors(points: int) -> tuple[Integers, Integers]:
    """The factors of bins 1 to points / 2."""
    return unit(-np.pi * (np.arange(1, points // 2 + 1) / points + 0.5))


def wrapped(values: Integers) -> Integers:
    """Wraps to 16 bits."""
    return ((values + 0x8000) & 0xFFFF) - 0x8000


def rounded(products: Integers) -> Integers:
    return wrapped((products + 0x4000) >> 15)


@dataclass(frozen=True, eq=False)
class Complex:
    re: Integers
    im: Integers

    def __add__(self, other: Complex) -> Complex:
        return Complex(wrapped(self.re + other.re), wrapped(self.im + other.im))

    def __sub__(self, other: Complex) -> Complex:
        return Complex(wrapped(self.re - other.re), wrapped(self.im - other.im))

    def __getitem__(self, at: Any) -> Complex:
        return Complex(self.re[at], self.im[at])

    def times(self, factors: tuple[Integers, Integers]) -> Complex:
        re, im = factors
        return Complex(rounded(self.re * re - self.im * im), rounded(self.re * im + self.im * re))

    def scaled(self, by: int) -> Complex:
        return Complex(rounded(self.re * by), rounded(self.im * by))


def transform(values: Complex) -> Complex:
    """Transforms the last axis."""
    points = values.re.shape[-1]
    table = factors(points)
    shape = values.re.shape
    values = values[..., list(order(points))]
    for stage in stages(points):
        blocks = (*shape[:-1], -1, stage.radix, stage.length)
        parts = Complex(values.re.reshape(blocks), values.im.reshape(blocks))
        values = _joined(_butterfly(stage, parts, table), shape)
    return values


def _butterfly(stage: Stage, parts: Complex, table: tuple[Integers, Integers]) -> list[Complex]:
    parts = parts.scaled(QUARTER if stage.radix == 4 else HALF)
    k = np.arange(stage.length) * stage.step
    first, *others = (parts[..., i, :] for i in range(stage.radix))
    turned = [each.times((table[0][i * k], table[1][i * k])) for i, each in enumerate(others, 1)]
    if stage.radix == 2:
        return [first + turned[0], first - turned[0]]
    b, c, e = turned
    sums, differences, outer = first + c, b + e, b - e
    rest = first - c
    right, left = Complex(outer.im, wrapped(-outer.re)), Complex(wrapped(-outer.im), outer.re)
    return [sums + differences, rest + right, sums - differences, rest + left]


def _joined(parts: list[Complex], shape: tuple[int, ...]) -> Complex:
    re, im = (np.stack(each, axis=-2).reshape(shape) for each in ([p.re for p in parts], [p.im for p in parts]))
    return Complex(re, im)


def real_transform(samples: Integers) -> Complex:
    """Bins 0 to half the length of real samples along the last axis."""
    points = samples.shape[-1] // 2
    t = transform(Complex(samples[..., 0::2], samples[..., 1::2]))
    k = np.arange(1, points // 2 + 1)
    p = t[..., k].scaled(HALF)
    mirrored = t[..., points - k]
    q = Complex(mirrored.re, wrapped(-mirrored.im)).scaled(HALF)
    g, h = p + q, (p - q).times(split_factors(points))
    first = t[..., 0].scaled(HALF)
    re, im = np.zeros((2, *samples.shape[:-1], points + 1), np.int64)
    re[..., 0], re[..., points] = wrapped(first.re + first.im), wrapped(first.re - first.im)
    re[..., k], im[..., k] = (g.re + h.re) >> 1, (g.im + h.im) >> 1
    re[..., points - k], im[..., points - k] = (g.re - h.re) >> 1, (h.im - g.im) >> 1
    return Complex(re, im)
