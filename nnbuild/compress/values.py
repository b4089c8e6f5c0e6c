"""Chooses the integers for shared or narrow weights, and the scale of every output channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.model.graph import Array

LARGEST = 127
FACTORS = np.linspace(0.5, 1.1, 13)
"""Factors of the scale at which the largest weight is the largest integer; smaller ones saturate it."""
BINS = 2


@dataclass(frozen=True, eq=False)
class Levels:
    """The allowed integers, in order, and the scale of every channel [groups, 1, outputs]."""

    integers: Array
    scales: Array

    def steps(self, weights: Array) -> Array:
        """The nearest integers for weights whose last axes are those of the scales."""
        return self._nearest(weights / self.scales)

    def nearest(self, weights: Array) -> Array:
        return self.steps(weights) * self.scales

    def of_input(self, weights: Array) -> Array:
        """The nearest integers for one input's weights [groups, outputs]."""
        scales = self.scales[:, 0]
        return self._nearest(weights / scales) * scales

    def _nearest(self, values: Array) -> Array:
        between = (self.integers[1:] + self.integers[:-1]) / 2
        return self.integers[np.searchsorted(between, values)]


def uniform(weights: Array, importance: Array, most: int, least: Array) -> Levels:
    """All integers up to `most`; each channel has the scale with the least error, but at least `least`."""
    integers = np.arange(-most, most + 1).astype(np.float64)
    return Levels(integers, _scales(weights, importance, integers, np.maximum(least, 0.0)))


def shared(weights: Array, importance: Array, kept: Array | None, count: int, least: Array) -> Levels:
    """The few integers with the least error over all channels; zero is always one of them, since kernels pad with
    it."""
    ends = np.asarray([-LARGEST, LARGEST], np.float64)
    scales = _floor(np.abs(weights).max(axis=1, keepdims=True) / LARGEST, least)
    levels = Levels(ends, scales)
    for _ in range(3):
        free = np.ones(weights.shape, bool) if kept is None else kept
        amounts = np.broadcast_to(importance * np.square(levels.scales), weights.shape)
        integers = clusters((weights / levels.scales)[free], amounts[free], count - 1)
        integers = np.union1d(integers, [0.0])
        levels = Levels(integers, _scales(weights, importance, integers, least))
    return levels


def _floor(scales: Array, least: Array) -> Array:
    found = np.maximum(scales, least)
    return np.where(found > 0, found, 1.0)


def _scales(weights: Array, importance: Array, integers: Array, least: Array) -> Array:
    """The best scale of each channel, by trial."""
    full = np.abs(weights).max(axis=1, keepdims=True) / np.abs(integers).max(initial=1.0)
    best, lowest = _floor(full, least), np.full(full.shape, np.inf)
    for factor in FACTORS[::-1]:
        scales = _floor(full * factor, least)
        off = Levels(integers, scales).nearest(weights) - weights
        errors = (importance * np.square(off)).sum(axis=1, keepdims=True)
        better = errors < lowest
        best, lowest = np.where(better, scales, best), np.where(better, errors, lowest)
    return best


def clusters(values: Array, amounts: Array, count: int) -> Array:
    """The integers with the least distance to the values, by dynamic programming over ordered partitions."""
    places: Array = np.clip(np.round(values * BINS), -LARGEST * BINS, LARGEST * BINS).astype(np.int64) + LARGEST * BINS
    weight: Array = np.bincount(places, amounts, 2 * LARGEST * BINS + 1)
    there = np.flatnonzero(np.bincount(places, minlength=len(weight)))
    centres: Array = (there - LARGEST * BINS) / BINS
    weight = weight[there] + 1e-12 * max(float(weight.sum()), 1e-300)
    if len(there) == 0:
        return np.zeros(1)
    sums = [np.concatenate([[0.0], np.cumsum(weight * centres**power)]) for power in range(3)]
    size = len(there)
    first, last = np.meshgrid(np.arange(size), np.arange(1, size + 1), indexing="ij")
    mass, moment, square = (total[last] - total[first] for total in sums)
    costs = np.where(first < last, square - np.divide(moment**2, mass, out=np.zeros_like(mass), where=mass > 0), np.inf)
    best = costs[0].copy()  # cost of the first n + 1 values in one cluster
    cuts = [np.zeros(size, np.int64)]
    for _ in range(1, min(count, size)):
        options = np.concatenate([[np.inf], best[:-1]])[:, None] + costs
        cuts.append(options.argmin(axis=0))
        best = options.min(axis=0)
    found, end = [], size
    for cut in reversed(cuts):
        start = int(cut[end - 1])
        found.append((sums[1][end] - sums[1][start]) / (sums[0][end] - sums[0][start]))
        end = start
    return np.unique(np.clip(np.round(found), -LARGEST, LARGEST))
