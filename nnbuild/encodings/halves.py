"""Words most of which consist of few distinct halves, or are few distinct words: a byte encodes each of these, and
stretches of other words are stored unchanged.

It encodes packed constants of kernels, in which weights and channel constants alternate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.encoded import Array, Encoded

ENTRIES = 256
AT_ONCE = 4
"""Encoded words come in multiples of so many."""
LONGEST = (1 << 16) - AT_ONCE


@dataclass(frozen=True, eq=False)
class Halves(Encoded):
    """table: of halves, or of whole words. stretches: alternately the number of plain words and of encoded words."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    codes: Array
    table: Array
    others: Array
    stretches: Array

    @property
    def turns(self) -> Array:
        return self.stretches.astype(np.int64)

    @property
    def parts(self) -> dict[str, Array]:
        between = {} if all_coded(self.stretches) else {"others": self.others, "stretches": self.stretches}
        return {"codes": self.codes, "table": self.table} | between

    def decode(self) -> Array:
        turns = self.turns
        coded = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
        words = np.zeros(len(coded), np.uint32)
        words[~coded] = self.others[: int(turns[0::2].sum())].view(np.uint32)
        count = 4 // self.table.itemsize * int(turns[1::2].sum())
        words[coded] = self.table[self.codes[:count]].view(np.uint32)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        result: Array = np.frombuffer(words.tobytes()[:size], self.dtype).reshape(self.shape)
        return result


def halves(values: Array) -> Halves:
    return _by_table(values, np.dtype(np.uint16))


def wholes(values: Array) -> Halves:
    """A byte for each of 256 words: all words of four bytes with at most four values."""
    return _by_table(values, np.dtype(np.uint32))


def _by_table(values: Array, kind: np.dtype[np.unsignedinteger]) -> Halves:
    words = words_of(values)
    found = words.view(kind).reshape(len(words), 4 // kind.itemsize)
    each, often = np.unique(found, return_counts=True)
    table = np.sort(each[np.argsort(-often, kind="stable")[:ENTRIES]])
    places = np.minimum(np.searchsorted(table, found), max(0, len(table) - 1))
    turns = stretches_of((table[places] == found).all(axis=1)) if len(words) else np.zeros(0, np.int64)
    coded = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
    codes, others = places[coded].reshape(-1).astype(np.uint8), words[~coded].view(np.int32)
    return Halves(
        values.shape,
        values.dtype,
        codes=codes if codes.size else np.zeros(1, np.uint8),  # C has no empty arrays
        table=table if table.size else np.zeros(1, kind),
        others=others if others.size else np.zeros(1, np.int32),
        stretches=turns.astype(np.uint16) if turns.size else np.zeros(2, np.uint16),
    )


def words_of(values: Array, at_once: int = AT_ONCE) -> Array:
    """As words, the last of which is repeated up to a multiple of `at_once`."""
    data = np.ascontiguousarray(values).tobytes()
    words: Array = np.frombuffer(data + bytes(-len(data) % 4), np.uint32)
    return np.pad(words, (0, -len(words) % at_once), mode="edge") if len(words) else words


def all_coded(stretches: Array) -> bool:
    """Whether there are words and all are encoded: then no stretches are needed."""
    return bool(stretches[1::2].any()) and not stretches[0::2].any()


def stretches_of(known: Array, at_once: int = AT_ONCE, longest: int = LONGEST) -> Array:
    """Lengths, alternately of plain words and of encoded ones; the latter are multiples of `at_once`, and none is
    longer than `longest`."""
    ends = np.flatnonzero(np.diff(known.astype(np.int8), append=2 - 3 * known[-1:].astype(np.int8))) + 1
    turns, others, begin = [], 0, 0
    for end in ends.tolist():
        size = end - begin if known[begin] else 0
        whole = size - size % at_once
        while whole:
            part = min(whole, longest)
            turns += [others, part]
            others, whole = 0, whole - part
        others += size % at_once if known[begin] else end - begin
        while others > longest:
            turns += [longest, 0]
            others -= longest
        begin = end
    return np.array([*turns, others, 0] if others else turns, np.int64)
