"""Words of few distinct bytes in Huffman codes: the more frequent a byte, the shorter its code.

Codes are canonical, lowest bit of a byte first, and at most LONGEST bits long, so that a table indexed by so many bits
gives the next byte. Words with a byte that has no code are stored unchanged, in separate stretches. A half word is
either a byte plus 256 times another one, like the weights of two channels in kernels, or two plain bytes: whichever
takes fewer bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush

import numpy as np

from nnbuild.encodings.encoded import Array, Encoded
from nnbuild.encodings.halves import all_coded, stretches_of, words_of

LONGEST = 8
MOST = 64
"""Distinct bytes with codes, at most."""
RARE = 1 / 2000
"""The share of all bytes from which a byte gets a code."""
LIMITS, SPREADS = (1, 2, 3, 4, 5, 7, 11, 15, 31), (0.3, 0.42, 0.52, 0.65, 100.0)
"""The usual size of weights from -n to n, as a fraction of n."""
BEYOND = 3
"""Bytes that decoders may read behind the last code."""
IN_WORD = 4
LONGEST_STRETCH = 255
SWITCH = 1.5
"""Bytes to store where a stretch begins or ends."""


@dataclass(frozen=True, eq=False)
class Prefix(Encoded):
    """lengths: the number of codes of 1, 2 … bits; table: their bytes in the order of codes. `carried` halves are sums.
    stretches: the number of plain words, the number of encoded words behind them, and how often both repeat."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    carried: bool
    codes: Array
    lengths: Array
    table: Array
    others: Array
    stretches: Array

    @property
    def parts(self) -> dict[str, Array]:
        between = {} if all_coded(self.turns) else {"others": self.others, "stretches": self.stretches}
        return {"codes": self.codes, "lengths": self.lengths, "table": self.table} | between

    @property
    def mask(self) -> int:
        """The mask of a half's lower byte, which includes the sign where halves are sums."""
        return -1 if self.carried else 255

    @property
    def turns(self) -> Array:
        """Alternately the number of plain words and of encoded words."""
        each = self.stretches.reshape(-1, 3).astype(np.int64)
        return np.repeat(each[:, :2], each[:, 2], axis=0).reshape(-1)

    @property
    def coded(self) -> int:
        """Encoded bytes."""
        return IN_WORD * int(self.turns[1::2].sum())

    def decode(self) -> Array:
        turns = self.turns
        there = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
        found = np.zeros(len(there), np.uint32)
        found[~there] = self.others[: int(turns[0::2].sum())].view(np.uint32)
        found[there] = _joined(self._bytes(), self.carried)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        result: Array = np.frombuffer(found.tobytes()[:size], self.dtype).reshape(self.shape)
        return result

    def _bytes(self) -> Array:
        places, sizes = lookup(self.lengths)
        bits = np.unpackbits(self.codes, bitorder="little").astype(np.int64)
        window = np.convolve(bits, 1 << np.arange(LONGEST)[::-1], "valid")
        values, onward = self.table[places[window]].tolist(), sizes[window].tolist()
        found, at = [], 0
        for _ in range(self.coded):
            found.append(values[at])
            at += onward[at]
        return np.array(found, np.int64)


def lookup(lengths: Array) -> tuple[Array, Array]:
    """For every value of LONGEST bits, the first of them lowest: the table index of its first code, and the code's
    length."""
    places, sizes = np.zeros(1 << LONGEST, np.int64), np.ones(1 << LONGEST, np.int64)
    for place, (code, size) in enumerate(_codes(lengths)):
        places[code :: 1 << size], sizes[code :: 1 << size] = place, size
    return places, sizes


def _codes(lengths: Array) -> list[tuple[int, int]]:
    """(code, length) of every entry of the table: codes of one length count up, with the lowest bit first."""
    found, code = [], 0
    for size, count in enumerate(lengths.tolist(), 1):
        code *= 2
        for _ in range(count):
            found.append((int(f"{code:0{size}b}"[::-1], 2), size))
            code += 1
    return found


def prefix(values: Array, whole: bool = False) -> Prefix:
    """`whole`: all words are encoded, if their bytes are few enough."""
    words = words_of(values, 1)
    ways = ((_parted(words, carried), carried) for carried in ((False,) if whole else (False, True)))
    found = (((0.0, _all(each)) if whole else _known(each), each, way) for each, way in ways)
    (_, known), each, carried = min(found, key=lambda found: found[0][0])
    turns = stretches_of(known[each + 128].all(axis=1), 1, LONGEST_STRETCH) if len(words) else np.zeros(0, np.int64)
    there = np.repeat(np.arange(len(turns)) % 2 == 1, turns)
    coded = each[there].reshape(-1)
    sizes = _sizes(np.bincount(coded + 128, minlength=256))
    table = np.array(sorted(np.flatnonzero(sizes), key=lambda one: (sizes[one], one)), np.int64)
    lengths = np.bincount(sizes[table], minlength=2)[1:]
    others = words[~there].view(np.int32)
    return Prefix(
        values.shape,
        values.dtype,
        carried,
        codes=_bits(coded, table, lengths),
        lengths=lengths.astype(np.uint8),
        table=(table - 128).astype(np.int8) if table.size else np.zeros(1, np.int8),
        others=others if others.size else np.zeros(1, np.int32),  # C has no empty arrays
        stretches=_repeated(turns).astype(np.uint8) if turns.size else np.zeros(3, np.uint8),
    )


def _known(each: Array) -> tuple[float, Array]:
    """The bytes with codes for which the total size is smallest, and that size approximately; words with other bytes
    are plain."""
    often = np.bincount(each.reshape(-1) + 128, minlength=256)
    order = np.argsort(-often, kind="stable")[:MOST]
    order = order[often[order] > RARE * each.size]
    rank = np.full(256, MOST)
    rank[order] = np.arange(len(order))
    last = rank[each + 128].max(axis=1)  # words are encoded if more bytes than this have codes
    places = 256 * last[:, None] + each + 128
    amounts = np.bincount(places.reshape(-1), minlength=256 * (MOST + 1)).reshape(MOST + 1, 256)[:-1].cumsum(axis=0)
    totals = amounts.sum(axis=1)
    bits = (amounts * np.log2(np.maximum(totals, 1)[:, None] / np.maximum(amounts, 1))).sum(axis=1)
    first, second = np.sort(np.stack([last[:-1], last[1:]]), axis=0)
    begins, ends = (np.bincount(which, minlength=MOST + 1)[:-1].cumsum() for which in (first, second))
    costs = bits / 8 + (each.size - totals) + np.count_nonzero(amounts, axis=1) + SWITCH * (begins - ends)
    best = int(costs.argmin())
    return float(costs[best]), rank <= best


def _all(each: Array) -> Array:
    known: Array = np.bincount(each.reshape(-1) + 128, minlength=256) > 0
    return known


def _repeated(turns: Array) -> Array:
    """Pairs of lengths, each with the number of its repetitions."""
    found: list[list[int]] = []
    for pair in turns.reshape(-1, 2).tolist():
        if found and found[-1][:2] == pair and found[-1][2] < LONGEST_STRETCH:
            found[-1][2] += 1
        else:
            found.append([*pair, 1])
    return np.array(found, np.int64).reshape(-1)


def _parted(words: Array, carried: bool) -> Array:
    """[words, 4] signed bytes."""
    halves = words.view(np.uint16).reshape(-1, 2).astype(np.int64)
    low = (halves & 0xFF ^ 0x80) - 0x80
    high = ((halves - low if carried else halves) >> 8 & 0xFF ^ 0x80) - 0x80
    return np.stack([low, high], axis=2).reshape(-1, IN_WORD)


def _joined(each: Array, carried: bool) -> Array:
    low, high = each.reshape(-1, 2).T
    halves = low + 256 * high if carried else low & 0xFF | (high & 0xFF) << 8
    return (halves & 0xFFFF).astype(np.uint16).view(np.uint32)


def _sizes(amounts: Array) -> Array:
    """The code length of every byte, from a shared usual table where an own one would not pay."""
    own = _limited(amounts)
    fitting = [sizes for sizes in _usual() if sizes[amounts > 0].all()]
    best = min(fitting, key=lambda sizes: int(sizes @ amounts), default=own)
    return best if (best - own) @ amounts <= 8 * (own.max(initial=0) + np.count_nonzero(own)) else own


@lru_cache(maxsize=1)
def _usual() -> list[Array]:
    """Tables for weights from -n to n, distributed randomly around zero or uniformly."""
    found = []
    for limit in LIMITS:
        each = np.arange(-128, 128)
        for spread in SPREADS:
            often = np.exp(-np.square(each / (limit * spread)) / 2) * (np.abs(each) <= limit)
            found.append(_limited(2.0**16 * often / often.sum()))
    return found


def _limited(amounts: Array) -> Array:
    """The code length of every byte, at most LONGEST: rare bytes are counted as more frequent until that holds."""
    least = 0.0
    while True:
        sizes = _huffman(np.where(amounts > 0, np.maximum(amounts, least), 0))
        if sizes.max(initial=0) <= LONGEST:
            return sizes
        least = max(1.0, 1.5 * least)


def _huffman(amounts: Array) -> Array:
    sizes = np.zeros(len(amounts), np.int64)
    there = np.flatnonzero(amounts)
    sizes[there[:1]] = len(there) == 1
    heap = [(float(amounts[one]), int(one), [int(one)]) for one in there]
    heapify(heap)
    while len(heap) > 1:
        first, second = heappop(heap), heappop(heap)
        both = first[2] + second[2]
        sizes[both] += 1
        heappush(heap, (first[0] + second[0], min(first[1], second[1]), both))
    return sizes


def _bits(coded: Array, table: Array, lengths: Array) -> Array:
    """All codes, concatenated, and the bytes that decoders may read behind them."""
    code, size = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for one, (bits, count) in zip(table, _codes(lengths), strict=True):
        code[one], size[one] = bits, count
    bits, counts = (of.astype(np.uint8)[coded + 128] for of in (code, size))
    places = np.arange(LONGEST, dtype=np.uint8)
    there = places < counts[:, None]
    each = bits[:, None] >> places & 1
    codes = np.packbits(each[there], bitorder="little") if there.any() else np.zeros(1, np.uint8)
    return np.concatenate([codes, np.zeros(BEYOND, np.uint8)])
