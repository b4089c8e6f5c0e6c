"""The microfrontend as integers of numpy: what every board computes, bit for bit.

Frames at once as far as they do not depend on each other: the estimate of the noise alone does.
"""

from __future__ import annotations

import numpy as np

from nnbuild.features.fixed_fft import Integers, real_transform, wrapped
from nnbuild.features.micro_tables import SHARE_BITS, WEIGHT_BITS, Filters, MicroTables, log_steps

FRAMES = 512
"""At a time."""
WORD = 0xFFFFFFFF
NATURAL = 45426
"""ln 2 in 16 bits."""


def frames(samples: Integers, window: int, step: int) -> Integers:
    """Those that are complete."""
    count = max(0, (len(samples) - window) // step + 1)
    return np.asarray(samples[np.arange(count)[:, None] * step + np.arange(window)])


def rows(tables: MicroTables, samples: Integers, step: int) -> tuple[Integers, Integers]:
    """The features of a stream from its start, and the noise as it is estimated after each frame."""
    whole = frames(samples.astype(np.int64), len(tables.window), step)
    estimate = np.zeros(tables.filters.channels, np.int64)
    found, noise = [np.zeros((0, len(estimate)), np.int64)], [np.zeros((0, len(estimate)), np.int64)]
    for at in range(0, len(whole), FRAMES):
        energies, shifts = spectra(tables, whole[at : at + FRAMES])
        signals = root(filtered(tables.filters, energies)) >> shifts[:, None]
        rest, estimates = less_noise(tables, signals, estimate)
        estimate = estimates[-1]
        found.append(compressed(tables, rest, estimates))
        noise.append(estimates)
    return np.concatenate(found), np.concatenate(noise)


def compressed(tables: MicroTables, values: Integers, estimates: Integers) -> Integers:
    if tables.gains is not None:
        values = with_gain(values, estimates, tables.gains, tables.snr_shift)
    return logarithm(values, tables.log_shift, tables.log_scale) if tables.log_shift is not None else values


def windowed(tables: MicroTables, whole: Integers) -> tuple[Integers, Integers]:
    """Frames as large as 16 bits hold, and by how many bits each was shifted."""
    values = (whole * tables.window) >> WEIGHT_BITS
    largest = np.where(values == -0x8000, 0, np.abs(values)).max(axis=-1)  # -32768 has no absolute value in 16 bits
    shifts = 15 - bits(largest)
    out = np.zeros((len(whole), tables.points), np.int64)
    out[:, : values.shape[1]] = wrapped(values << shifts[:, None])
    return out, shifts


def spectra(tables: MicroTables, whole: Integers) -> tuple[Integers, Integers]:
    out, shifts = windowed(tables, whole)
    bins = real_transform(out)
    return bins.re**2 + bins.im**2, shifts


def filtered(filters: Filters, energies: Integers) -> Integers:
    """Sums of at most 56 bits."""
    part = energies[:, filters.first : filters.first + len(filters.of)]
    out = np.empty((len(part), filters.channels), np.int64)
    for group in range(1, filters.channels + 1):
        mine, before = filters.of == group, filters.of == group - 1
        out[:, group - 1] = part[:, mine] @ filters.weights[mine] + part[:, before] @ filters.rests[before]
    return out


def root(values: Integers) -> Integers:
    """To the nearest, but for the largest of 16 and of 32 bits, which stay."""
    found = np.floor(np.sqrt(values.astype(np.float64))).astype(np.int64)
    found -= found * found > values
    found += (found + 1) * (found + 1) <= values
    most = np.where(values <= WORD, 0xFFFF, WORD)
    return np.asarray(found + ((values - found * found > found) & (found != most)))


def less_noise(tables: MicroTables, signals: Integers, estimate: Integers) -> tuple[Integers, Integers]:
    """What is above the noise, and the noise as it is estimated after each frame."""
    shares = np.resize(np.array(tables.shares, np.int64), signals.shape[1])
    scaled = (signals << tables.smoothing_bits) & WORD
    estimates = np.empty_like(signals)
    for index, up in enumerate(scaled):
        estimate = ((up * shares + estimate * ((1 << SHARE_BITS) - shares)) >> SHARE_BITS) & WORD
        estimates[index] = estimate
    rest = (scaled - np.minimum(estimates, scaled)) >> tables.smoothing_bits
    return np.maximum(rest, (signals * tables.least) >> SHARE_BITS), estimates


def bits(values: Integers) -> Integers:
    """How many a number below 2^53 takes."""
    return np.asarray(np.frexp(values.astype(np.float64))[1], np.int64)


def gain_of(estimates: Integers, knots: Integers) -> Integers:
    length = bits(estimates)
    at = np.maximum(4 * length - 6, 0)
    fraction = np.where(length < 11, estimates << np.maximum(11 - length, 0), estimates >> np.maximum(length - 11, 0))
    z = fraction & 0x3FF
    y0, first, second = (knots[np.minimum(at + i, len(knots) - 1)] for i in range(3))
    parabola = ((((second * z) >> 5) + (first << 5)) * z + (1 << 14)) >> 15
    return np.where(estimates < 2, knots[np.minimum(estimates, 1)], y0 + parabola)


def with_gain(values: Integers, estimates: Integers, knots: Integers, shift: int) -> Integers:
    snr = ((values * gain_of(estimates, knots)) >> shift) & WORD
    return np.where(snr < 8192, (snr * snr) >> 20, (snr >> 6) - 64)


def logarithm(values: Integers, shift: int, scale: int) -> Integers:
    """The natural logarithm, scaled by a power of two, of the value that shift makes up for."""
    steps = log_steps()
    y = (values << shift) & WORD
    whole = np.maximum(bits(y) - 1, 0)
    part = y - (np.int64(1) << whole)
    fraction = np.where(whole < 16, part << np.maximum(16 - whole, 0), part >> np.maximum(whole - 16, 0))
    at = np.clip(fraction >> 9, 0, 127)
    low = steps[at]
    log2 = (whole << 16) + fraction + low + (((steps[at + 1] - low) * (fraction - 512 * at)) >> 16)
    natural = (NATURAL * log2 + 0x8000) >> 16
    return np.where(y > 1, np.minimum(0xFFFF, ((natural << scale) + 0x8000) >> 16), 0)
