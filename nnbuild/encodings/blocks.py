"""Sparse weights as kernels read them: blocks of neighbouring numbers, with the distance to the next block.

A group of `rows` outputs shares the places of its blocks; a block holds the weights of `depth` neighbouring inputs for
each output. Groups are consecutive and `starts` gives the start of each, so any group can be computed alone. A step is
one byte: the distance from the previous block (from the first input, for a group's first), times `unit`; larger
distances insert blocks of zeros. Every group is padded with zeros to a multiple of `turn` blocks.

A single number is a block of one by one; N of every M weights, shared by several outputs, are blocks of these outputs
by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.encoded import Array, Encoded, smallest_unsigned

FARTHEST = 255


@dataclass(frozen=True, eq=False)
class Blocks(Encoded):
    """starts: [groups + 1], in blocks; steps: [blocks]; values: [blocks, rows, depth]. `shape` is [inputs, outputs]."""

    shape: tuple[int, ...]
    unit: int
    starts: Array
    steps: Array
    values: Array

    @property
    def rows(self) -> int:
        return int(self.values.shape[1])

    @property
    def depth(self) -> int:
        return int(self.values.shape[2])

    @property
    def parts(self) -> dict[str, Array]:
        return {"starts": self.starts, "steps": self.steps, "values": self.values}

    def decode(self) -> Array:
        groups, ends = len(self.starts) - 1, self.starts.astype(np.int64)
        counts = ends[1:] - ends[:-1]
        own = np.repeat(np.arange(groups), counts)
        along = np.cumsum(self.steps.astype(np.int64) // self.unit)
        before = np.concatenate([[0], along])[self.starts[:-1].astype(np.int64)]
        places = along - before[own]
        inputs, outputs = self.shape
        whole = np.zeros((-(-inputs // self.depth), groups, self.rows, self.depth), self.values.dtype)
        np.add.at(whole, (places, own), self.values)
        return whole.transpose(0, 3, 1, 2).reshape(-1, groups * self.rows)[:inputs, :outputs]


def blocks(matrix: Array, rows: int, depth: int, unit: int = 1, turn: int = 1) -> Blocks:
    """The blocks of a matrix [inputs, outputs]."""
    inputs, outputs = matrix.shape
    whole = np.pad(matrix, ((0, -inputs % depth), (0, -outputs % rows)))
    each = whole.reshape(whole.shape[0] // depth, depth, whole.shape[1] // rows, rows).transpose(2, 0, 3, 1)
    own, places = np.nonzero((each != 0).any(axis=(2, 3)))
    groups, farthest = each.shape[0], FARTHEST // unit
    first = np.concatenate([[True], own[1:] != own[:-1]]) if len(own) else np.zeros(0, bool)
    apart = places - np.where(first, 0, np.concatenate([[0], places[:-1]])[: len(places)])
    between = np.maximum(0, -(-apart // farthest) - 1)
    counts = np.bincount(own, weights=between + 1, minlength=groups).astype(np.int64)
    filled = -(-counts // turn) * turn
    filled[:1] += turn if not counts.any() else 0  # C has no empty arrays
    starts = np.concatenate([[0], np.cumsum(filled)])
    # the index of each block: behind zero blocks before it, and the padding of earlier groups
    at = np.cumsum(between + 1) - 1 + (starts[:-1] - np.concatenate([[0], np.cumsum(counts)])[:-1])[own]
    steps = np.zeros(starts[-1], np.uint8)
    far = np.repeat(at, between) - _count_down(between)
    steps[far] = farthest * unit
    steps[at] = (apart - between * farthest) * unit
    values = np.zeros((starts[-1], rows, depth), matrix.dtype)
    values[at] = each[own, places]
    return Blocks(matrix.shape, unit, smallest_unsigned(starts, 16), steps, values)


def _count_down(counts: Array) -> Array:
    """1, 2 … up to each count, concatenated."""
    ends = np.cumsum(counts)
    result: Array = np.arange(1, (ends[-1] if len(ends) else 0) + 1) - np.repeat(ends - counts, counts)
    return result
