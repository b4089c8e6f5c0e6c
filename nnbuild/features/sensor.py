"""Sensor features: for each axis mean, deviation and root mean square, bands and peaks of its spectrum.

Sums over samples are integers, so they are exact; the rest is float32 in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.features.float_fft import Floats, real_transform
from nnbuild.features.frontend import Array
from nnbuild.features.spectral import logarithm

STATISTICS = ("mean", "std", "rms")
FRAMES = 256
"""Frames computed at a time."""


@dataclass(frozen=True)
class Sensor:
    """Lengths in samples of each axis, `rate` in hertz; `gain` converts sensor values to its units. bands: number of
    bands of equal width, from the first bin above 0 to half the rate; their powers, or the natural logarithms of these,
    clamped to at least `least`. peaks: number of peaks, highest first, each as frequency and height.
    """

    rate: int = 100
    window: int = 256
    step: int = 128
    axes: int = 3
    gain: float = 1.0
    values: tuple[str, ...] = STATISTICS
    bands: int = 8
    logarithm: bool = True
    least: float = 1e-10
    peaks: int = 0

    @property
    def points(self) -> int:
        return 1 << (self.window - 1).bit_length()

    @property
    def spectrum(self) -> bool:
        return self.bands > 0 or self.peaks > 0

    @property
    def of_axis(self) -> int:
        return len(self.values) + self.bands + 2 * self.peaks

    @cached_property
    def shape(self) -> Floats:
        """Hann window in the sensor's units, for integers: samples times the window's length, less their sum."""
        turns = np.arange(self.window) / self.window
        return ((0.5 - 0.5 * np.cos(2 * np.pi * turns)) * self.gain / self.window).astype(np.float32)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The bins where bands begin, and the end of the last."""
        bins = self.points // 2
        return tuple(1 + bins * i // self.bands for i in range(self.bands + 1)) if self.bands else ()

    @property
    def norm(self) -> np.float32:
        """Factor of powers with which a sine's power in its bin is the square of half its height."""
        weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.window) / self.window)
        return np.float32(1 / weights.sum() ** 2)

    @property
    def mean_factor(self) -> np.float32:
        return np.float32(self.gain / self.window)

    @property
    def rms_factor(self) -> np.float32:
        return np.float32(self.gain**2 / self.window)

    @property
    def std_factor(self) -> np.float32:
        return np.float32(self.gain**2 / self.window**2)

    @property
    def hertz(self) -> np.float32:
        return np.float32(self.rate / self.points)


def rows(s: Sensor, samples: Array) -> Floats:
    """The rows of a stream from its start: one axis after the other in each row."""
    whole = np.asarray(samples, np.int64).reshape(-1, s.axes)
    count = max(0, (len(whole) - s.window) // s.step + 1)
    found = [np.zeros((0, s.axes * s.of_axis), np.float32)]
    for at in range(0, count, FRAMES):
        places = np.arange(at, min(count, at + FRAMES))[:, None] * s.step + np.arange(s.window)
        each = whole[places]
        found.append(np.concatenate([_axis(s, each[:, :, axis]) for axis in range(s.axes)], axis=1))
    return np.concatenate(found)


def _axis(s: Sensor, x: Array) -> Floats:
    total, squares = x.sum(axis=1), (x * x).sum(axis=1)
    known = {
        "mean": total.astype(np.float32) * s.mean_factor,
        "std": np.sqrt((s.window * squares - total * total).astype(np.float32) * s.std_factor),
        "rms": np.sqrt(squares.astype(np.float32) * s.rms_factor),
    }
    parts = [known[name][:, None] for name in s.values]
    if s.spectrum:
        moved = (x * s.window - total[:, None]).astype(np.float32)
        padded = np.zeros((len(x), s.points), np.float32)
        padded[:, : s.window] = moved * s.shape
        re, im = real_transform(padded)
        powers = (re * re + im * im) * s.norm
        parts += [_bands(s, powers)] if s.bands else []
        parts += [_peaks(s, powers)] if s.peaks else []
    return np.concatenate(parts, axis=1).astype(np.float32)


def _bands(s: Sensor, powers: Floats) -> Floats:
    out = np.zeros((len(powers), s.bands), np.float32)
    for band, (first, end) in enumerate(zip(s.edges, s.edges[1:], strict=False)):
        for k in range(first, end):
            out[:, band] = out[:, band] + powers[:, k]
    return logarithm(np.maximum(out, np.float32(s.least))) if s.logarithm else out


def _peaks(s: Sensor, powers: Floats) -> Floats:
    """Bins above the previous one and not below the next; of equal ones the lowest first."""
    out = np.zeros((len(powers), 2 * s.peaks), np.float32)
    inner = powers[:, 1:-1]
    there = (inner > powers[:, :-2]) & (inner >= powers[:, 2:])
    for index, (found, row) in enumerate(zip(there, inner, strict=True)):
        at = np.flatnonzero(found)
        best = at[np.argsort(-row[at], kind="stable")][: s.peaks]
        out[index, 0 : 2 * len(best) : 2] = (best + 1).astype(np.float32) * s.hertz
        out[index, 1 : 2 * len(best) : 2] = np.sqrt(row[best])
    return out
