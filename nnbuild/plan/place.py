"""Places buffers in one arena so that no two that are needed at the same time overlap, but for those that may.

Buffers are laid down one by one at the lowest offset that is free. The order decides the result, so several orders
are tried, then small changes of the best one, until the arena is as small as the fullest moment or the patience is
used up. Nothing here depends on time or chance: the same buffers always give the same places.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

PATIENCE = 200_000


@dataclass(frozen=True)
class Buffer:
    """`size` bytes needed from step `first` to step `last`, both included.

    `may_precede` names buffers that this one may overlap when it begins at least so many bytes before them: it is
    written from its beginning on while they are read for the last time, and never gets ahead of what is still to be
    read. A number below 0 lets it begin so many bytes after them. `every` names those of them from which its
    beginning must be a multiple of so many bytes away.
    """

    name: str
    size: int
    first: int
    last: int
    may_precede: Mapping[str, int] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    offsets: dict[str, int]
    size: int
    bound: int
    """What the fullest step needs at least; no placement can be smaller."""


def meet(a: Buffer, b: Buffer) -> bool:
    return a.first <= b.last and b.first <= a.last


def compatible(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    """Whether two buffers needed at the same time may lie at these offsets."""
    if at + a.size <= bt or bt + b.size <= at:
        return True
    return _precedes(a, at, b, bt) or _precedes(b, bt, a, at)


def _precedes(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    if b.name not in a.may_precede or at + a.may_precede[b.name] > bt:
        return False
    return (bt - at) % a.every.get(b.name, 1) == 0


def place(buffers: Sequence[Buffer], alignment: int, enough: int = 0) -> Placement:
    """The search ends early where an arena of `enough` bytes is found, or none of that size can be."""
    aligned = _aligned(buffers, alignment)
    bound = fullest(aligned)
    neighbours = _neighbours(aligned)
    best, size, order = _first_try(aligned, neighbours)
    if bound <= enough or not enough:
        best, size = _improve(best, size, order, neighbours, max(bound, enough))
    return Placement({b.name: best.get(b.name, 0) for b in buffers}, size, bound)


def _aligned(buffers: Sequence[Buffer], alignment: int) -> list[Buffer]:
    """Whole units of the alignment, without those that have no size."""

    def whole(size: int, unit: int = alignment) -> int:
        return -(-size // unit) * unit

    def leads(b: Buffer) -> dict[str, int]:
        return {name: whole(lead, lcm(alignment, b.every.get(name, 1))) for name, lead in b.may_precede.items()}

    return [replace(b, size=whole(b.size), may_precede=leads(b)) for b in buffers if b.size]


def _neighbours(buffers: list[Buffer]) -> dict[str, list[Buffer]]:
    return {b.name: [other for other in buffers if other is not b and meet(b, other)] for b in buffers}


def _first_try(buffers: list[Buffer], neighbours: dict[str, list[Buffer]]) -> tuple[dict[str, int], int, list[Buffer]]:
    """The best of a few orders that are often good."""
    tries = [(*_lay(order, neighbours), order) for order in _orders(buffers)]
    return min(tries, key=lambda found: found[1])


def fullest(buffers: Iterable[Buffer]) -> int:
    """The most bytes that any step needs, counting what may share storage once."""
    known = list(buffers)
    most = 0
    for step in {b.first for b in known}:
        alive = [b for b in known if b.first <= step <= b.last]
        sizes = {b.name: b.size for b in alive}
        shared = sum(_shared(b, sizes) for b in alive)
        most = max(most, sum(sizes.values()) - shared, max(sizes.values(), default=0))
    return most


def _shared(buffer: Buffer, sizes: dict[str, int]) -> int:
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


def _lay(order: list[Buffer], neighbours: dict[str, list[Buffer]]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    size = 0
    for buffer in order:
        placed = [(other, offsets[other.name]) for other in neighbours[buffer.name] if other.name in offsets]
        offsets[buffer.name] = _lowest(buffer, placed)
        size = max(size, offsets[buffer.name] + buffer.size)
    return offsets, size


def _lowest(buffer: Buffer, placed: list[tuple[Buffer, int]]) -> int:
    ends = {at + other.size for other, at in placed}
    under = {max(0, at + lead) for other, at in placed if (lead := other.may_precede.get(buffer.name)) is not None}
    over = {max(0, at - lead) for other, at in placed if (lead := buffer.may_precede.get(other.name)) is not None}
    candidates = sorted({0} | ends | under | over)
    for candidate in candidates:
        if all(compatible(buffer, candidate, other, at) for other, at in placed):
            return candidate
    raise AssertionError("the end of everything placed is always free")


def _improve(
    best: dict[str, int], best_size: int, order: list[Buffer], neighbours: dict[str, list[Buffer]], bound: int
) -> tuple[dict[str, int], int]:
    """Moves single buffers to other places in the order as long as that may still help."""
    chance = random.Random(0)
    tries = min(400, PATIENCE // len(order) ** 2) if len(order) > 2 else 0
    for _ in range(tries):
        if best_size <= bound:
            break
        changed = list(order)
        changed.insert(chance.randrange(len(changed)), changed.pop(chance.randrange(len(changed))))
        offsets, size = _lay(changed, neighbours)
        if size <= best_size:
            best, best_size, order = offsets, size, changed
    return best, best_size
