"""The microfrontend's settings, and the tables derived from them. All tables are computed here, none on a board.

They are computed in float32 where the original code does so, to get the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.numeric.fixed_fft import Integers

SHARE_BITS = 14
"""Fractional bits of the noise estimate's smoothing factors."""
WEIGHT_BITS = 12
"""Fractional bits of window and filters."""
GAIN_KNOTS = 125
LOG_SERIES = tuple(
    map(np.float32, (0.14798199, 0.15313838, 0.18183573, 0.2222219855, 0.2857142985, 0.4000000060, 0.6666666865))
)
LN2_HIGH, LN2_LOW = np.float32(0.69313812256), np.float32(9.0580006145e-06)


@dataclass(frozen=True)
class Micro:
    """Settings of a microfrontend; the defaults are those of wake words in the field. Times in ms, bands in hertz."""

    rate: int = 16000
    window_ms: int = 30
    step_ms: int = 10
    channels: int = 40
    low: float = 125.0
    high: float = 7500.0
    smoothing_bits: int = 10
    even_smoothing: float = 0.025
    odd_smoothing: float = 0.06
    min_signal: float = 0.05
    pcan: bool = True
    pcan_strength: float = 0.95
    pcan_offset: float = 80.0
    pcan_gain_bits: int = 21
    log: bool = True
    log_shift: int = 6

    @property
    def window(self) -> int:
        return self.rate * self.window_ms // 1000

    @property
    def step(self) -> int:
        return self.rate * self.step_ms // 1000


@dataclass(frozen=True, eq=False)
class Filters:
    """Triangular filters: `of` is the group of each bin from `first` on; a bin counts with its weight for the channel
    before its group, and with the rest for the channel of its group."""

    channels: int
    first: int
    of: Integers
    weights: Integers
    rests: Integers


@dataclass(frozen=True, eq=False)
class MicroTables:
    window: Integers
    points: int
    """Points of the transform."""
    filters: Filters
    shares: tuple[int, int]
    least: int
    gains: Integers | None
    snr_shift: int
    log_shift: int | None
    smoothing_bits: int
    log_scale: int


def micro_tables(micro: Micro) -> MicroTables:
    points = 1 << (micro.window - 1).bit_length()
    correction = points.bit_length() - 1 - 6  # with what window and filters leave
    return MicroTables(
        window=hann(micro.window),
        points=points,
        filters=filters(micro, points),
        shares=(share(micro.even_smoothing), share(micro.odd_smoothing)),
        least=share(micro.min_signal),
        gains=gains(micro, correction) if micro.pcan else None,
        snr_shift=micro.pcan_gain_bits - correction - 12,
        log_shift=correction if micro.log else None,
        smoothing_bits=micro.smoothing_bits,
        log_scale=micro.log_shift,
    )


def share(value: float) -> int:
    return int(np.float32(value) * np.float32(1 << SHARE_BITS))


def hann(size: int) -> Integers:
    """Hann window in float32, every operation rounded."""
    half = np.float32(0.5)
    turn = np.float32(np.pi * 2.0 / size)
    angles = (turn * (np.arange(size, dtype=np.float32) + half)).astype(np.float32)
    values = half - half * np.cos(angles.astype(np.float64)).astype(np.float32)
    return np.floor(values.astype(np.float64) * (1 << WEIGHT_BITS) + 0.5).astype(np.int64)


def mel(hertz: float) -> np.float32:
    return np.float32(1127.0 * np.float64(log1p(np.float32(np.float32(hertz) / np.float32(700)))))


def log1p(x: np.float32) -> np.float32:
    """ln(1 + x) for x > 0 in float32, as most C libraries computed it when these tables were first made: libraries that
    round better give other filters."""
    one, two, half = map(np.float32, (1, 2, 0.5))
    u = one + x
    k = int(np.frexp(u)[1]) - 1
    lost = (one - (u - x) if k > 0 else x - (u - one)) / u
    fraction = np.ldexp(u, -k)
    if fraction >= np.float32(1.4142134):
        k, fraction = k + 1, fraction * half
    f = fraction - one
    if k == 0:
        f = x
        lost = np.float32(0)
    square = half * f * f
    s = f / (two + f)
    z = s * s
    series = np.float32(0)
    for coefficient in LOG_SERIES:
        series = z * (coefficient + series)
    n = np.float32(k)
    low = n * LN2_LOW + lost
    return np.float32(n * LN2_HIGH - ((square - (s * (square + series) + low)) - f))


def filters(micro: Micro, points: int) -> Filters:
    low, high = mel(micro.low), mel(micro.high)
    spacing = np.float32((high - low) / np.float32(micro.channels + 1))
    centers = [np.float32(low + spacing * np.float32(i + 1)) for i in range(micro.channels + 1)]
    per_bin = np.float32(0.5 * micro.rate / np.float32(points // 2))
    first = int(1.5 + micro.low / per_bin)
    of, weights, rests = [], [], []
    index, before = first, low
    for group, center in enumerate(centers):
        while (here := mel(float(np.float32(index) * per_bin))) <= center and index <= points // 2:
            weight = np.float32((center - here) / (center - before))
            of.append(group)
            weights.append(int(np.floor(weight * np.float32(1 << WEIGHT_BITS) + 0.5)))
            rests.append(int(np.floor((1.0 - np.float64(weight)) * (1 << WEIGHT_BITS) + 0.5)))
            index += 1
        before = center
    return Filters(micro.channels, first, *(np.array(each, np.int64) for each in (of, weights, rests)))


def gains(micro: Micro, correction: int) -> Integers:
    """The gain at powers of two, with two coefficients of a parabola to the next; the first two stand alone."""
    input_bits = micro.smoothing_bits - correction

    def gain(x: int) -> int:
        at = np.float32(np.float32(x) / np.float32(1 << input_bits) + np.float32(micro.pcan_offset))
        power = np.float32(np.float64(at) ** -np.float64(np.float32(micro.pcan_strength)))
        value = np.float32(1 << micro.pcan_gain_bits) * power
        return 0x7FFF if value > 0x7FFF else int(value + np.float32(0.5))

    found = [gain(0), gain(1)]
    for interval in range(2, 33):
        low = 1 << (interval - 1)
        at = low, low + (low >> 1), min(2 * low, 0xFFFFFFFF)
        y0, y1, y2 = map(gain, at)
        first = 4 * (y1 - y0) - (y2 - y0)
        found += [y0, first, y2 - y0 - first, 0]
    return np.array(found[:GAIN_KNOTS], np.int64)
