"""Sparsity patterns: unstructured, in blocks, or N of every M with outputs that share positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.model.graph import Array


@dataclass(frozen=True)
class Pattern:
    """Weights are kept or dropped in blocks of so many outputs by so many inputs; with `every`, each stretch of so many
    inputs keeps the same number of blocks."""

    name: str
    outputs: int = 1
    inputs: int = 1
    every: int | None = None

    def mask(self, importance: Array, density: float) -> Array:
        """The mask of weights [inputs, outputs] that keeps the most importance (which adds up). Remainders form smaller
        blocks or shorter stretches.
        """
        rows, columns = importance.shape
        blocks = _sums(importance, self.inputs, self.outputs)
        # Edge blocks hold fewer weights: what counts is importance per weight.
        blocks = blocks / _sums(np.ones((rows, columns)), self.inputs, self.outputs)
        kept = _largest(blocks, density) if self.every is None else _by_stretch(blocks, density, self.every)
        return np.repeat(np.repeat(kept, self.inputs, 0), self.outputs, 1)[:rows, :columns]


UNSTRUCTURED = Pattern("unstructured")
PATTERNS = (
    UNSTRUCTURED,
    Pattern("4x1", 4, 1),
    Pattern("2x2", 2, 2),
    Pattern("4x2", 4, 2),
    Pattern("4 of 16 rows", 4, 1, 16),
)


def _sums(values: Array, rows: int, columns: int) -> Array:
    values = np.add.reduceat(values, np.arange(0, values.shape[0], rows), axis=0)
    return np.add.reduceat(values, np.arange(0, values.shape[1], columns), axis=1)


def _largest(values: Array, density: float) -> Array:
    count = min(values.size, max(1, round(values.size * density)))
    kept = np.zeros(values.size, bool)
    kept[np.argpartition(-values.ravel(), count - 1)[:count]] = True
    return kept.reshape(values.shape)


def _by_stretch(values: Array, density: float, every: int) -> Array:
    kept = np.zeros(values.shape, bool)
    count = max(1, round(every * density))
    for start in range(0, len(values), every):
        part = values[start : start + every]
        best = np.argsort(-part, axis=0, kind="stable")[: min(count, len(part))]
        np.put_along_axis(kept[start : start + every], best, True, axis=0)
    return kept
