"""Words of which most halves are among few: a byte for each of these, and stretches of other words as they are.

So is stored what a kernel has laid out for itself, with weights and constants of channels one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.encoded import Array, Encoded

ENTRIES = 256
AT_ONCE = 4
"""Words with codes come in so many."""
LONGEST = (1 << 16) - AT_ONCE


@dataclass(frozen=True, eq=False)
class Halves(Encoded):
    """stretches: in turn how many words are as they are and how many have codes."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    codes: Array
    table: Array
    others: Array
    stretches: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"codes": self.codes, "table": self.table, "others": self.others, "stretches": self.stretches}

    def decode(self) -> Array:
        turns = self.stretches.astype(np.int64)
        coded = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
        words = np.zeros(len(coded), np.uint32)
        words[~coded] = self.others[: int(turns[0::2].sum())].view(np.uint32)
        words[coded] = self.table[self.codes[: 2 * int(turns[1::2].sum())]].view(np.uint32)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        result: Array = np.frombuffer(words.tobytes()[:size], self.dtype).reshape(self.shape)
        return result


def halves(values: Array) -> Halves:
    data = np.ascontiguousarray(values).tobytes()
    words = np.frombuffer(data + bytes(-len(data) % 4), np.uint32)
    found = words.view(np.uint16).reshape(-1, 2)
    often = np.bincount(found.reshape(-1), minlength=1 << 16)
    table = np.sort(np.argsort(-often, kind="stable")[: min(ENTRIES, int((often > 0).sum()))])
    place = np.zeros(1 << 16, np.uint8)
    place[table] = np.arange(len(table))
    known = np.zeros(1 << 16, bool)
    known[table] = True
    turns = stretches_of(known[found[:, 0]] & known[found[:, 1]])
    coded = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
    codes, others = place[found[coded]].reshape(-1), words[~coded].view(np.int32)
    return Halves(
        values.shape,
        values.dtype,
        codes=codes if codes.size else np.zeros(1, np.uint8),  # no array of C is empty
        table=table.astype(np.uint16) if table.size else np.zeros(1, np.uint16),
        others=others if others.size else np.zeros(1, np.int32),
        stretches=turns.astype(np.uint16) if turns.size else np.zeros(2, np.uint16),
    )


def stretches_of(known: Array) -> Array:
    """Lengths, in turn of what has no codes and of what has; the latter are multiples of AT_ONCE."""
    ends = np.flatnonzero(np.diff(known.astype(np.int8), append=2 - 3 * known[-1:].astype(np.int8))) + 1
    turns, others, begin = [], 0, 0
    for end in ends.tolist():
        size = end - begin if known[begin] else 0
        whole = size - size % AT_ONCE
        while whole:
            part = min(whole, LONGEST)
            turns += [others, part]
            others, whole = 0, whole - part
        others += size % AT_ONCE if known[begin] else end - begin
        while others > LONGEST:
            turns += [LONGEST, 0]
            others -= LONGEST
        begin = end
    return np.array([*turns, others, 0] if others else turns, np.int64)
