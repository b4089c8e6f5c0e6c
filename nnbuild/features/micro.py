"""The microfrontend in numpy integers, bit for bit as on every board.

Many frames are computed at once; only the noise estimate depends on earlier frames.
"""

from __future__ import annotations

import numpy as np

from nnbuild.features.micro_tables import SHARE_BITS, WEIGHT_BITS, Filters, MicroTables
from nnbuild.numeric.fixed_fft import Integers, real_transform, wrapped
from nnbuild.numeric.signal import WORD, bits, logarithm, root, with_gain

FRAMES = 512
"""Frames computed at a time."""


def frames(samples: Integers, window: int, step: int) -> Integers:
    """The complete frames."""
    count = max(0, (len(samples) - window) // step + 1)
    return np.asarray(samples[np.arange(count)[:, None] * step + np.arange(window)])


def rows(tables: MicroTables, samples: Integers, step: int) -> tuple[Integers, Integers]:
    """The features of a stream from its start, and the noise estimate after each frame."""
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
    return logarithm(values, tables.log_shift, 1 << tables.log_scale) if tables.log_shift is not None else values


def windowed(tables: MicroTables, whole: Integers) -> tuple[Integers, Integers]:
    """Windowed frames shifted to use all 16 bits, and their shifts."""
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
    """Filtered energies: sums of at most 56 bits."""
    part = energies[:, filters.first : filters.first + len(filters.of)]
    out = np.empty((len(part), filters.channels), np.int64)
    for group in range(1, filters.channels + 1):
        mine, before = filters.of == group, filters.of == group - 1
        out[:, group - 1] = part[:, mine] @ filters.weights[mine] + part[:, before] @ filters.rests[before]
    return out


def less_noise(tables: MicroTables, signals: Integers, estimate: Integers) -> tuple[Integers, Integers]:
    """The signals above the noise, and the noise estimate after each frame."""
    shares = np.resize(np.array(tables.shares, np.int64), signals.shape[1])
    scaled = (signals << tables.smoothing_bits) & WORD
    estimates = np.empty_like(signals)
    for index, up in enumerate(scaled):
        estimate = ((up * shares + estimate * ((1 << SHARE_BITS) - shares)) >> SHARE_BITS) & WORD
        estimates[index] = estimate
    rest = (scaled - np.minimum(estimates, scaled)) >> tables.smoothing_bits
    return np.maximum(rest, (signals * tables.least) >> SHARE_BITS), estimates
