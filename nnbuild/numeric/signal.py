"""The arithmetic of fixed-point front ends in numpy integers, identical on every board."""

from __future__ import annotations

import numpy as np

from nnbuild.numeric.fixed_fft import Integers, wrapped

WORD = 0xFFFFFFFF
NATURAL = 45426
"""ln 2 in 16 bits."""


def root(values: Integers) -> Integers:
    """The nearest integer, except for the largest roots of 16 and 32 bits, which stay."""
    found = np.floor(np.sqrt(values.astype(np.float64))).astype(np.int64)
    found -= found * found > values
    found += (found + 1) * (found + 1) <= values
    most = np.where(values <= WORD, 0xFFFF, WORD)
    return np.asarray(found + ((values - found * found > found) & (found != most)))


def bits(values: Integers) -> Integers:
    """The bit length of numbers below 2^53."""
    return np.asarray(np.frexp(values.astype(np.float64))[1], np.int64)


def gain_of(estimates: Integers, knots: Integers) -> Integers:
    length = bits(estimates)
    at = np.maximum(4 * length - 6, 0)
    fraction = np.where(length < 11, estimates << np.maximum(11 - length, 0), estimates >> np.maximum(length - 11, 0))
    z = fraction & 0x3FF
    y0, first, second = (knots[np.minimum(at + i, len(knots) - 1)] for i in range(3))
    parabola = ((((second * z) >> 5) + (first << 5)) * z + (1 << 14)) >> 15
    return wrapped(np.where(estimates < 2, knots[np.minimum(estimates, 1)], y0 + parabola))


def with_gain(values: Integers, estimates: Integers, knots: Integers, shift: int) -> Integers:
    gain = (gain_of(estimates, knots) & WORD).astype(np.uint64)
    snr = ((values.astype(np.uint64) * gain) >> np.uint64(shift)).astype(np.int64) & WORD
    return np.where(snr < 8192, (snr * snr) >> 20, (snr >> 6) - 64)


def logarithm(values: Integers, shift: int, scale: int, most: int = 0xFFFF) -> Integers:
    """`scale` times the natural logarithm, corrected for the shift of the values."""
    steps = log_steps()
    y = (values << shift) & WORD
    whole = np.maximum(bits(y) - 1, 0)
    part = y - (np.int64(1) << whole)
    fraction = np.where(whole < 16, part << np.maximum(16 - whole, 0), part >> np.maximum(whole - 16, 0))
    at = np.clip(fraction >> 9, 0, 127)
    low = steps[at]
    log2 = (whole << 16) + fraction + low + (((steps[at + 1] - low) * (fraction - 512 * at)) >> 16)
    natural = (NATURAL * log2 + 0x8000) >> 16
    return np.where(y > 1, np.minimum(most, ((natural * scale + 0x8000) & WORD) >> 16), 0)


def log_steps() -> Integers:
    """log2(1 + x) - x at 128 places and both ends, in 16 bits."""
    x = np.arange(129) / 128
    return np.append(np.floor(65536 * (np.log2(1 + x) - x) + 0.5).astype(np.int64), 0)


def room(frame: Integers) -> int:
    """The largest left shift of 16-bit samples. -32768, whose magnitude exceeds 16 bits, allows none; as in the
    original, later samples are then compared with the smallest magnitude."""
    largest = int(np.abs(frame).max(initial=0))
    if largest == 0x8000:
        largest = 0
        for value in map(int, frame):
            if value > largest:
                largest = value
            elif -value > largest:
                largest = -value if value > -0x8000 else value
    return 0 if largest < 0 else 15 - largest.bit_length()


def banded(
    energies: Integers, weights: Integers, rests: Integers, bins: Integers, starts: Integers, widths: Integers
) -> Integers:
    """Each group of bins contributes its weights to one channel, and their rests to the next; the first group's channel
    is left out."""
    found = np.zeros((len(energies), len(widths) + 1), np.int64)
    for group, (first, start, width) in enumerate(zip(bins, starts, widths, strict=True)):
        part = energies[:, first : first + width]
        found[:, group] += part @ weights[start : start + width]
        found[:, group + 1] += part @ rests[start : start + width]
    return found[:, 1:-1]


def above_noise(signals: Integers, noise: Integers, numbers: tuple[int, ...]) -> tuple[Integers, Integers]:
    """The signal above the noise, and the new estimate of the noise."""
    even = np.arange(signals.shape[-1]) % 2 == 0
    new, old = (np.where(even, numbers[i], numbers[i + 2]).astype(np.uint64) for i in range(2))
    least, up_bits, share_bits, bounded = numbers[4:]
    up = (signals << up_bits) & WORD
    wide = up.astype(np.uint64) * new + noise.astype(np.uint64) * old
    estimate = (wide >> np.uint64(share_bits)).astype(np.int64) & WORD
    below = np.minimum(estimate, up)
    floor = ((signals.astype(np.uint64) * np.uint64(least)) >> np.uint64(share_bits)).astype(np.int64) & WORD
    return np.maximum((up - below) >> up_bits, floor), below if bounded else estimate
