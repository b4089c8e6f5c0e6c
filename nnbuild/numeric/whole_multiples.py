"""Floats that are whole numbers of 8 bits times one factor for each channel: the weights of files that store them so,
also after a normalization was multiplied into them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
LARGEST = 128
TOLERANCE = 4e-7
"""The relative error of a product of three floats."""
SAMPLE = 24
"""Weights of each channel that decide whether the others are looked at."""
FEWEST = 8
"""Weights of a channel from which bytes and a factor are worth it."""
LEAST = 1e-20
"""The smallest factor: a quotient of two must be a float, and multiples of far smaller ones lose digits."""


def whole_multiples(weights: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]] | None:
    """The whole numbers and the factor of each channel, the last axis, if the weights are such products."""
    columns = weights.reshape(-1, weights.shape[-1]).astype(np.float64)
    largest = np.abs(columns).max(axis=0, initial=0)
    if not np.isfinite(largest).all() or not largest.any():
        return None
    sample = columns[:: -(-len(columns) // SAMPLE)]
    factor = np.ones_like(largest)
    for channel in np.flatnonzero(largest):
        steps = largest[channel] / np.arange(LARGEST, 0, -1)
        found = _step(columns[:, channel], sample[:, channel], steps)
        if found is None or found < LEAST:
            return None
        factor[channel] = found
    return np.rint(columns / factor).astype(np.int8).reshape(weights.shape), factor.astype(np.float32)


def _step(column: Floats, sample: Floats, steps: Floats) -> float | None:
    """The first step of which all weights are multiples that fit a byte."""
    for step in steps[_multiples(sample[:, None], steps).all(axis=0)]:
        if _multiples(column, step).all():
            return float(step)
    return None


def _multiples(weights: Floats, step: Floats) -> NDArray[np.bool_]:
    numbers = np.rint(weights / step)
    near: NDArray[np.bool_] = np.abs(numbers * step - weights) <= TOLERANCE * np.abs(weights)
    return near & (numbers >= -LARGEST) & (numbers < LARGEST)


def rounded_to_bytes(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest such products, with the largest weight of each channel as 127; channels of nearly no weights have
    none."""
    columns = weights.reshape(-1, weights.shape[-1])
    factor = np.abs(columns).max(axis=0) / np.float32(LARGEST - 1)
    factor[factor < LEAST] = 0
    numbers = np.rint(columns / np.where(factor > 0, factor, np.float32(1)))
    result: NDArray[np.float32] = (numbers * factor).astype(np.float32).reshape(weights.shape)
    return result
