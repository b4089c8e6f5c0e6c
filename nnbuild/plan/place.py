"""Places buffers in one arena so that no two that are needed at the same time overlap, but for those that may.

Buffers are laid down one by one at the lowest offset that is free. The order decides the result, so several orders
are tried, then small changes of the best one, until the arena is as small as the fullest moment or the patience is
used up. Nothing here depends on time or chance: the same buffers always give the same places.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

PATIENCE = 200_000


@dataclass(frozen=True)
class Buffer:
    """`size` bytes needed from step `first` to step `last`, both included.

    `may_precede` names buffers that this one may overlap when it begins at or before them: it is written from its
    beginning on while they are read for the last time, and never gets ahead of what is still to be read.
    """

    name: str
    size: int
    first: int
    last: int
    may_precede: frozenset[str] = field(default=frozenset())


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
    return (b.name in a.may_precede and at <= bt) or (a.name in b.may_precede and bt <= at)


def place(buffers: Sequence[Buffer], alignment: int) -> Placement:
    aligned = [
        Buffer(b.name, -(-b.size // alignment) * alignment, b.first, b.last, b.may_precede) for b in buffers if b.size
    ]
    bound = fullest(aligned)
    best: dict[str, int] = {}
    best_size = -1
    best_order: list[Buffer] = []
    neighbours = {b.name: [o for o in aligned if o is not b and meet(b, o)] for b in aligned}
    for order in _orders(aligned):
        offsets, size = _lay(order, neighbours)
        if best_size < 0 or size < best_size:
            best, best_size, best_order = offsets, size, order
    best, best_size = _improve(best, best_size, best_order, neighbours, bound)
    return Placement({b.name: best.get(b.name, 0) for b in buffers}, max(best_size, 0), bound)


def fullest(buffers: Iterable[Buffer]) -> int:
    """The most bytes that any step needs, counting what may share storage once."""
    known = list(buffers)
    most = 0
    for step in {b.first for b in known}:
        alive = [b for b in known if b.first <= step <= b.last]
        sizes = {b.name: b.size for b in alive}
        shared = sum(max((min(b.size, sizes[n]) for n in b.may_precede if n in sizes), default=0) for b in alive)
        most = max(most, sum(sizes.values()) - shared, max(sizes.values(), default=0))
    return most


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
    candidates = sorted({0} | ends | {at for other, at in placed if buffer.name in other.may_precede})
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
