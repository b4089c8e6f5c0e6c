"""Places buffers in one arena so that no two that are alive at the same time overlap, except where permitted.

Each buffer goes to the lowest free offset. The order decides the result, so several orders are tried, then small
changes of the best one, until the arena reaches its lower bound or the search budget is spent. Neither time nor chance
matters: the same buffers always get the same offsets.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from math import lcm

SEARCH_BUDGET = 200_000
"""Search budget of each of the many arenas that are only compared with others."""

FULL_SEARCH_BUDGET = 4_000_000
"""Search budget of the final arena."""


@dataclass(frozen=True)
class Buffer:
    """`size` bytes needed from step `first` to step `last`, both included.

    `may_precede` names buffers that this one may overlap if it begins at least so many bytes before them: it is written
    from its beginning on while they are read for the last time, and never overtakes the reads. A negative number lets
    it begin so many bytes after them. `multiple` names those of them whose distance must be a multiple of so many
    bytes.
    """

    name: str
    size: int
    first: int
    last: int
    may_precede: Mapping[str, int] = field(default_factory=dict)
    multiple: Mapping[str, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.size, self.first, self.last))


@dataclass(frozen=True)
class Placement:
    offsets: dict[str, int]
    size: int
    bound: int
    """Lower bound: bytes that the fullest step needs at least."""


def _may_overlap(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    """Whether two buffers alive at the same time may share bytes at these offsets."""
    return _precedes(a, at, b, bt) or _precedes(b, bt, a, at)


def _precedes(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    if b.name not in a.may_precede or at + a.may_precede[b.name] > bt:
        return False
    return (bt - at) % a.multiple.get(b.name, 1) == 0


def place(buffers: Sequence[Buffer], alignment: int, enough: int = 0, patience: int = SEARCH_BUDGET) -> Placement:
    """Stops early once an arena of `enough` bytes is found, or when the lower bound already exceeds it."""
    return _placed(tuple(buffers), alignment, enough, patience)


@lru_cache(maxsize=1024)
def _placed(buffers: tuple[Buffer, ...], alignment: int, enough: int, patience: int) -> Placement:
    """Once: plans that are compared often have the same buffers."""
    aligned = _aligned(buffers, alignment)
    bound = lower_bound(aligned)
    neighbours = neighbours_of(aligned)
    target = max(bound, enough) if bound <= enough or not enough else sum(b.size for b in aligned)
    best, size, order = _best_order(aligned, neighbours, target)
    best, size = _improve(best, size, order, neighbours, target, patience)
    return Placement({b.name: best.get(b.name, 0) for b in buffers}, size, bound)


def _aligned(buffers: Sequence[Buffer], alignment: int) -> list[Buffer]:
    """Buffers rounded up to the alignment, without empty ones."""

    def whole(size: int, unit: int = alignment) -> int:
        return -(-size // unit) * unit

    def leads(b: Buffer) -> dict[str, int]:
        return {name: whole(lead, lcm(alignment, b.multiple.get(name, 1))) for name, lead in b.may_precede.items()}

    return [replace(b, size=whole(b.size), may_precede=leads(b)) for b in buffers if b.size]


def neighbours_of(buffers: list[Buffer]) -> dict[str, list[Buffer]]:
    """For each buffer, those that are alive at the same time."""
    number = {b.name: index for index, b in enumerate(buffers)}
    found: dict[str, list[Buffer]] = {b.name: [] for b in buffers}
    alive: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: b.first):
        alive = [other for other in alive if other.last >= buffer.first]
        for other in alive:
            found[buffer.name].append(other)
            found[other.name].append(buffer)
        alive.append(buffer)
    return {name: sorted(beside, key=lambda b: number[b.name]) for name, beside in found.items()}


def _best_order(
    buffers: list[Buffer], neighbours: dict[str, list[Buffer]], target: int
) -> tuple[dict[str, int], int, list[Buffer]]:
    """The best of a few orders that often work well; the first that meets the target."""
    tries = []
    for order in _orders(buffers):
        offsets = place_in_order(order, neighbours, {})
        tries.append((offsets, _end(order, offsets), order))
        if tries[-1][1] <= target:
            break
    return min(tries, key=lambda found: found[1])


def lower_bound(buffers: Iterable[Buffer]) -> int:
    """The most bytes that any step needs, counting shared storage once."""
    known = sorted(buffers, key=lambda b: b.first)
    most, alive = 0, list[Buffer]()
    for step, starting in groupby(known, key=lambda b: b.first):
        alive = [*(b for b in alive if b.last >= step), *starting]
        sizes = {b.name: b.size for b in alive}
        shared = sum(_most_shared(b, sizes) for b in alive)
        most = max(most, sum(sizes.values()) - shared, max(sizes.values(), default=0))
    return most


def _most_shared(buffer: Buffer, sizes: dict[str, int]) -> int:
    """The most bytes that a buffer can share with those that it may precede."""
    pairs = [(sizes[name], lead) for name, lead in buffer.may_precede.items() if name in sizes]
    saved = [buffer.size + size - max(buffer.size, size + max(lead, 0)) for size, lead in pairs]
    return min(buffer.size, sum(max(0, bytes_saved) for bytes_saved in saved))


def _orders(buffers: list[Buffer]) -> list[list[Buffer]]:
    return [
        sorted(buffers, key=lambda b: (-b.size, b.first, b.name)),
        sorted(buffers, key=lambda b: (-b.size * (b.last - b.first + 1), b.name)),
        sorted(buffers, key=lambda b: (b.first, -b.size, b.name)),
        sorted(buffers, key=lambda b: (-b.last, -b.size, b.name)),
    ]


def place_in_order(
    order: list[Buffer], neighbours: dict[str, list[Buffer]], laid: dict[str, int], most: int | None = None
) -> dict[str, int]:
    """Offsets of all buffers; stops as soon as one ends beyond `most`. The first ones are `laid` already."""
    offsets = dict(laid)
    for buffer in order[len(laid) :]:
        placed = [(other, offsets[other.name]) for other in neighbours[buffer.name] if other.name in offsets]
        name, leads = buffer.name, buffer.may_precede
        bound = any(name in other.may_precede or other.name in leads for other, _ in placed)
        offset = _lowest(buffer, placed) if bound else _first_gap(buffer.size, placed)
        if most is not None and offset + buffer.size > most:
            break
        offsets[buffer.name] = offset
    return offsets


def _end(buffers: list[Buffer], offsets: dict[str, int]) -> int:
    return max((offsets[b.name] + b.size for b in buffers), default=0)


def _first_gap(size: int, placed: list[tuple[Buffer, int]]) -> int:
    """The lowest free offset, where no overlap is permitted."""
    lowest = 0
    for at, end in sorted((at, at + other.size) for other, at in placed):
        if at >= lowest + size:
            break
        lowest = max(lowest, end)
    return lowest


def _lowest(buffer: Buffer, placed: list[tuple[Buffer, int]]) -> int:
    """The lowest free offset, where some overlaps are permitted. Inlined: nearly all search time is spent here."""
    candidates, size, leads = {0}, buffer.size, buffer.may_precede
    for other, at in placed:
        candidates.add(at + other.size)
        if buffer.name in other.may_precede:
            candidates.add(max(0, at + other.may_precede[buffer.name]))
        if other.name in leads:
            candidates.add(max(0, at - leads[other.name]))
    for candidate in sorted(candidates):
        end = candidate + size
        for other, at in placed:
            if candidate < at + other.size and at < end and not _may_overlap(buffer, candidate, other, at):
                break
        else:
            return candidate
    raise AssertionError("the end of everything placed is always free")


def _improve(
    best: dict[str, int],
    best_size: int,
    order: list[Buffer],
    neighbours: dict[str, list[Buffer]],
    target: int,
    patience: int,
) -> tuple[dict[str, int], int]:
    """Moves single buffers to other places in the order as long as that may help.

    Buffers ahead of both places keep their offsets, and an order that needs more memory is abandoned at once. Orders
    that agree on any two buffers alive at the same time give the same offsets, which are found only once.
    """
    chance = random.Random(0)
    tries = min(patience // 500, patience // len(order) ** 2) if len(order) > 2 else 0
    pairs = [(b.name, other.name) for b in order for other in neighbours[b.name] if b.name < other.name]
    known: dict[tuple[bool, ...], dict[str, int]] = {}
    for _ in range(tries):
        if best_size <= target:
            break
        after, before = chance.randrange(len(order)), chance.randrange(len(order))
        changed = list(order)
        changed.insert(after, changed.pop(before))
        turn = {b.name: index for index, b in enumerate(changed)}
        key = tuple([turn[one] < turn[other] for one, other in pairs])
        if key not in known:
            laid = {b.name: best[b.name] for b in order[: min(before, after)]}
            known[key] = place_in_order(changed, neighbours, laid, best_size)
        offsets = known[key]
        if len(offsets) == len(changed):
            size = _end(changed, offsets)
            if size < best_size:
                known.clear()
            best, best_size, order = offsets, size, changed
    return best, best_size
