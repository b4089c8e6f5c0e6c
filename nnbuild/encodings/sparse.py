"""Columns of a sparse matrix: each stored number as an index into a codebook, with the number of zeros before it.

Where more zeros precede a number than the few bits can count, entries of zero are inserted: a count of 15 and the zero
it leads to stand for 16. Row i belongs to lane i mod N, and each lane has its columns to itself, so that lanes need not
wait for each other. Pointers give the start of each column of a lane.

    a column 0 0 1 2, eighteen zeros, 3, counted in 4 bits: numbers 1 2 0 3, zeros before them 2 0 15 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.codes import bits_for, packed, unpacked
from nnbuild.encodings.encoded import Array, Encoded, smallest_unsigned


@dataclass(frozen=True, eq=False)
class Lane:
    """pointers: the start of each column's entries, and the end of the last; codes and zeros: of every entry, in `bits`
    and `width` bits."""

    pointers: Array
    codes: Array
    zeros: Array


@dataclass(frozen=True, eq=False)
class Sparse(Encoded):
    """`shape` is [rows, columns]; `table` includes zero for inserted entries."""

    shape: tuple[int, ...]
    width: int
    table: Array
    lanes: tuple[Lane, ...]

    @property
    def bits(self) -> int:
        return bits_for(len(self.table))

    @property
    def parts(self) -> dict[str, Array]:
        found = {"table": self.table}
        for number, lane in enumerate(self.lanes):
            named = {"pointers": lane.pointers, "codes": lane.codes, "zeros": lane.zeros}
            found |= {f"{name}{number}": part for name, part in named.items()}
        return found

    def entries(self, lane: Lane) -> tuple[Array, Array]:
        """The numbers, and the zeros before them."""
        count = int(lane.pointers[-1])
        return self.table[unpacked(lane.codes, self.bits, count)], unpacked(lane.zeros, self.width, count)

    def decode(self) -> Array:
        whole = np.zeros(self.shape, self.table.dtype)
        for number, lane in enumerate(self.lanes):
            values, zeros = self.entries(lane)
            ends = lane.pointers.astype(np.int64)
            columns = np.repeat(np.arange(self.shape[1]), ends[1:] - ends[:-1])
            along = np.concatenate([[0], np.cumsum(zeros + 1)])
            rows = along[1:] - 1 - along[ends[:-1]][columns]
            whole[number + len(self.lanes) * rows, columns] = values
        return whole


def sparse(matrix: Array, width: int = 4, lanes: int = 1) -> Sparse:
    """Encodes [rows, columns], with counts of zeros in `width` bits."""
    parts = [_dealt(matrix[lane::lanes], width) for lane in range(lanes)]
    table = np.unique(np.concatenate([values for _, values, _ in parts] or [matrix[:0, 0]]))
    table = table if table.size else np.zeros(1, matrix.dtype)
    bits = bits_for(len(table))

    def stored() -> Iterator[Lane]:
        for pointers, values, zeros in parts:
            codes = packed(np.searchsorted(table, values), bits)
            yield Lane(smallest_unsigned(pointers, 16), codes, packed(zeros, width))

    return Sparse(matrix.shape, width, table, tuple(stored()))


def _dealt(matrix: Array, width: int) -> tuple[Array, Array, Array]:
    """(pointers, numbers, zeros before each) of a lane's rows."""
    columns, rows = np.nonzero(matrix.T)
    first = np.concatenate([[True], columns[1:] != columns[:-1]])[: len(columns)]
    before = np.where(first, -1, np.concatenate([[0], rows[:-1]])[: len(rows)])
    zeros, most = rows - before - 1, (1 << width) - 1
    between = zeros // (most + 1)
    at = np.cumsum(between + 1) - 1
    size = int(at[-1]) + 1 if len(at) else 0
    values, counts = np.zeros(size, matrix.dtype), np.full(size, most, np.int64)
    values[at] = matrix[rows, columns]
    counts[at] = zeros - between * (most + 1)
    own = np.bincount(columns, weights=between + 1, minlength=matrix.shape[1]).astype(np.int64)
    return np.concatenate([[0], np.cumsum(own)]), values, counts
