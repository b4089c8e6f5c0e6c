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
    """Zero and up to `count` other integers with the least distance to the values, each weighed by its amount.

    No value is nearer to an integer of the other sign than to zero, so each sign has its own.
    """
    places: Array = np.clip(np.round(values * BINS), -LARGEST * BINS, LARGEST * BINS).astype(np.int64)
    below = _partitioned(-places[places < 0], amounts[places < 0], count)
    above = _partitioned(places[places > 0], amounts[places > 0], count)
    under = min(range(count + 1), key=lambda number: below.error(number) + above.error(count - number))
    found = np.concatenate([-below.means(under), [0.0], above.means(count - under)])
    return np.unique(np.clip(np.round(found), -LARGEST, LARGEST))


@dataclass(frozen=True, eq=False)
class _Partitions:
    """Ordered values, the smallest of them taken as zero and the rest in 0, 1, 2 … clusters: the error of each number
    of clusters, and where the last one begins by where it ends. `sums` are of the powers 0, 1 and 2 up to each value.
    """

    errors: list[float]
    cuts: list[Array]
    sums: list[Array]

    def error(self, count: int) -> float:
        return self.errors[min(count, len(self.cuts))]

    def means(self, count: int) -> Array:
        found, end = [], len(self.sums[0]) - 1
        for cut in reversed(self.cuts[:count]):
            if end == 0:
                break
            start = int(cut[end - 1])
            found.append((self.sums[1][end] - self.sums[1][start]) / (self.sums[0][end] - self.sums[0][start]))
            end = start
        return np.asarray(found, np.float64)


def _partitioned(places: Array, amounts: Array, count: int) -> _Partitions:
    """Partitions of values of one sign, in steps of 1 / BINS, by dynamic programming."""
    there = np.unique(places)
    centres = there / BINS
    weight: Array = np.bincount(places, amounts)[there]
    weight = weight + 1e-12 * max(float(weight.sum()), 1e-300)
    sums = [np.concatenate([[0.0], np.cumsum(weight * centres**power)]) for power in range(3)]
    size = len(there)
    first, last = np.meshgrid(np.arange(size), np.arange(1, size + 1), indexing="ij")
    mass, moment, square = (total[last] - total[first] for total in sums)
    costs = np.where(first < last, square - np.divide(moment**2, mass, out=np.zeros_like(mass), where=mass > 0), np.inf)
    best, cuts = sums[2], []
    errors = [float(best[-1])]
    for _ in range(min(count, size)):
        options = best[:-1, None] + costs
        cuts.append(options.argmin(axis=0))
        best = np.concatenate([[0.0], options.min(axis=0)])
        errors.append(float(best[-1]))
    return _Partitions(errors, cuts, sums)
