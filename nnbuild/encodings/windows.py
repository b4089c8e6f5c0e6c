"""Rows of a sparse matrix, two at a time, in windows of 256 columns: for sets that look up bytes.

The entries of a window of the first row, then those of the second, form one sequence of places, 256 apart, so that the
sum of all steps is the column, modulo 256. An entry has the zeros before it in its lower half and its number's table
index in the upper one; for more than 15 zeros, entries of zero are inserted. A byte for each row and window counts its
entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.encoded import Array, Encoded

WINDOW = 256
FAR = 16
"""Places that one entry can advance."""
MOST = 255
"""Entries of a row's window, at most."""
VALUES = 16


@dataclass(frozen=True, eq=False)
class Windows(Encoded):
    """`shape` is [columns, rows], a dense layer's weights; counts: [pair of rows][window][row]; starts: the start of
    each pair's entries."""

    shape: tuple[int, ...]
    table: Array
    entries: Array
    counts: Array
    starts: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"table": self.table, "entries": self.entries, "counts": self.counts, "starts": self.starts}

    def decode(self) -> Array:
        columns, rows = self.shape
        pairs, windows = -(-rows // 2), -(-columns // WINDOW)
        counts = self.counts.reshape(pairs * windows, 2).astype(np.int64)
        window = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
        second = np.arange(len(window)) - (np.cumsum(counts.sum(axis=1)) - counts.sum(axis=1))[window]
        row = second >= counts[window, 0]
        along = np.cumsum((self.entries & FAR - 1).astype(np.int64) + 1)
        begin = np.concatenate([[0], along])[np.searchsorted(window, np.arange(len(counts)))]
        places = (along - begin[window] - 1) % WINDOW
        whole = np.zeros((windows * WINDOW, 2 * pairs), self.table.dtype)
        whole[window % windows * WINDOW + places, window // windows * 2 + row] = self.table[self.entries >> 4]
        return whole[:columns, :rows]


def windows(matrix: Array) -> Windows | None:
    """Encodes [columns, rows] with at most 16 values, including zero; None if a window has too many entries or
    values."""
    table = np.union1d(matrix, 0).astype(matrix.dtype)
    if len(table) > VALUES:
        return None
    columns, rows = matrix.shape
    whole = np.pad(matrix, ((0, -columns % WINDOW), (0, rows % 2)))
    pairs, count = whole.shape[1] // 2, whole.shape[0] // WINDOW
    places = whole.T.reshape(pairs, 2, count, WINDOW).transpose(0, 2, 1, 3).reshape(-1, 2 * WINDOW)
    at, place = np.nonzero(places)
    first = np.concatenate([[True], at[1:] != at[:-1]])[: len(at)]
    before = np.where(first, -1, np.concatenate([[0], place[:-1]])[: len(at)])
    between = (place - before - 1) // FAR
    last = np.cumsum(between + 1) - 1
    size = int(last[-1]) + 1 if len(last) else 0
    entries = np.full(size, FAR - 1 | int(np.searchsorted(table, 0)) << 4, np.uint8)
    codes = np.searchsorted(table, places[at, place])
    entries[last] = place - before - 1 - FAR * between | codes << 4
    counts = np.zeros((len(places), 2), np.int64)
    np.add.at(counts, (at, place // WINDOW), between + 1)
    if counts.max(initial=0) > MOST:
        return None
    starts = np.concatenate([[0], np.cumsum(counts.reshape(pairs, -1).sum(axis=1))])
    return Windows(matrix.shape, table, entries, counts.astype(np.uint8).reshape(-1), starts.astype(np.uint32))
