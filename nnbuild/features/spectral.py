"""Spectrograms, mel bands and cepstra in float32, in a fixed order of operations, as on every board."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.features.float_fft import Floats, real_transform
from nnbuild.features.micro import frames
from nnbuild.features.spectral_tables import Spectral, bands, cosines, window

FRAMES = 256
"""Frames computed at a time."""
DECIBELS = np.float32(10 / np.log(10.0))
LN2_HIGH, LN2_LOW = np.float32(float.fromhex("0x1.62e4p-1")), np.float32(float.fromhex("0x1.7f7d1cp-20"))
SERIES = tuple(
    np.float32(float.fromhex(each))
    for each in (
        *("-0x1.41ee1ap-4", "0x1.07d0fp-3", "-0x1.0ce078p-3", "0x1.226e4ap-3"),
        *("-0x1.54788cp-3", "0x1.99a596p-3", "-0x1.00022p-2", "0x1.55554ap-2"),
    )
)
"""Coefficients of firmware/libm/nn_logpartsf.c, highest power first."""
ROOT_HALF = 0x3F3504F3


@dataclass(frozen=True, eq=False)
class Bands:
    """Each band's bins: `width` of them from `first` on, and all weights, band after band."""

    first: np.ndarray
    width: np.ndarray
    weights: Floats


@dataclass(frozen=True)
class SpectralTables:
    settings: Spectral

    @cached_property
    def window(self) -> Floats:
        return window(self.settings).astype(np.float32)

    @cached_property
    def bands(self) -> Bands:
        dense = bands(self.settings)
        first, width, weights = [], [], []
        for row in dense:
            there = np.flatnonzero(row)
            first.append(int(there[0]) if len(there) else 0)
            width.append(int(there[-1] - there[0] + 1) if len(there) else 0)
            weights.append(row[first[-1] : first[-1] + width[-1]])
        return Bands(np.array(first), np.array(width), np.concatenate(weights).astype(np.float32))

    @cached_property
    def cosines(self) -> Floats:
        return cosines(self.settings).astype(np.float32)


def logarithm(x: Floats) -> Floats:
    """The logarithm of firmware/libm/nn_logf.c, for x above 0."""
    small = x < np.float32(2.0**-126)
    scaled = np.where(small, x * np.float32(2.0**23), x).astype(np.float32)
    bits = scaled.view(np.uint32).astype(np.int64) + (0x3F800000 - ROOT_HALF)
    k = (bits >> 23) - 127 - np.where(small, 23, 0)
    f = ((bits & 0x7FFFFF) + ROOT_HALF).astype(np.uint32).view(np.float32) - np.float32(1)
    n = k.astype(np.float32)
    high = n * LN2_HIGH
    total = high + f
    rest = f - (total - high)
    square = f * f
    q = SERIES[1] + f * SERIES[0]
    for coefficient in SERIES[2:]:
        q = coefficient + f * q
    low = (n * LN2_LOW + np.float32(0)) - square * (np.float32(0.5) - f * q)
    return np.asarray(total + (rest + low), np.float32)


def rows(tables: SpectralTables, samples: np.ndarray) -> tuple[Floats, np.ndarray]:
    """The features of a stream from its start, and the sample before each next frame."""
    s = tables.settings
    whole = np.concatenate([[0], samples.astype(np.int64)])
    count = max(0, (len(samples) - s.window) // s.step + 1)
    before = whole[(np.arange(count) + 1) * s.step] if s.emphasis else np.zeros(count, np.int64)
    found = [np.zeros((0, s.coefficients or s.values), np.float32)]
    each = frames(whole, s.window + 1, s.step)[:count]
    for at in range(0, count, FRAMES):
        found.append(_rows(tables, each[at : at + FRAMES].astype(np.float32)))
    return np.concatenate(found), before


def _rows(tables: SpectralTables, whole: Floats) -> Floats:
    s = tables.settings
    values = whole[:, 1:]
    if s.emphasis:
        values = values - np.float32(s.emphasis) * whole[:, :-1]
    out = np.zeros((len(whole), s.points), np.float32)
    first = (s.points - s.heard) // 2 if s.centred else 0
    out[:, first : first + s.heard] = values[:, : s.heard]
    out = out * tables.window
    re, im = real_transform(out)
    powers = re * re + im * im
    spectrum = np.sqrt(powers) if s.of == "magnitude" else powers
    return _finished(tables, _summed(tables.bands, spectrum))


def _summed(bands: Bands, spectrum: Floats) -> Floats:
    """Weighted sums of the bands, bin after bin."""
    total = np.zeros((len(spectrum), len(bands.first)), np.float32)
    starts = np.concatenate([[0], np.cumsum(bands.width)[:-1]])
    for j in range(int(bands.width.max(initial=0))):
        more = j < bands.width
        at = np.where(more, bands.first + j, 0)
        weights = np.where(more, bands.weights[np.where(more, starts + j, 0)], np.float32(0))
        total = np.where(more, total + spectrum[:, at] * weights, total)
    return total


def _finished(tables: SpectralTables, values: Floats) -> Floats:
    s = tables.settings
    if s.logarithm != "none":
        values = np.maximum(values, np.float32(s.least)) if s.least else values
        values = values + np.float32(s.more) if s.more else values
        values = logarithm(values)
        values = values * DECIBELS if s.logarithm == "db" else values
    values = values + np.float32(s.add) if s.add else values
    values = values * np.float32(s.multiply) if s.multiply != 1.0 else values
    values = np.maximum(values, np.float32(s.minimum)) if s.minimum > -1e30 else values
    values = np.minimum(values, np.float32(s.maximum)) if s.maximum < 1e30 else values
    if not s.coefficients:
        return values
    out = np.zeros((len(values), s.coefficients), np.float32)
    for n in range(values.shape[1]):
        out = out + values[:, n : n + 1] * tables.cosines[:, n]
    return out
