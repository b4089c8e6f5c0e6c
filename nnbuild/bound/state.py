"""The state between two blocks, and the set of states on their paths through one function."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from nnbuild.bound.block import Refused, Value
from nnbuild.bound.block_order import Order
from nnbuild.bound.memory import Words
from nnbuild.bound.register_distance import same_distances
from nnbuild.bound.writer import VALUES

ROUNDS = 100_000
"""Visits of a loop's head with several open paths, after which the loop counts as endless."""
Trail = tuple[tuple[int, int], ...]
"""The heads of the loops around a block, and how often each was reached since its loop was entered."""
Key = tuple[int, ...]
ANSWERS = 13
"""Registers in which compilers keep the result of a condition: r0 to r12."""
APART = -1
"""Last element of the key of a second path at the same block."""


@dataclass
class State:
    registers: list[Value]
    words: Words
    count: int = 0
    cycles: int = 0

    def fork(self) -> State:
        return State(self.registers.copy(), self.words.copy(), self.count, self.cycles)

    def join(self, other: State) -> None:
        """Keeps what holds on both paths."""
        mine, theirs = self.registers, other.registers
        if mine != theirs:
            self.registers = [a if a == b else None for a, b in zip(mine, theirs, strict=True)]
        if self.words != other.words:
            get = other.words.get
            self.words = {place: word for place, word in self.words.items() if get(place) == word}
        self.count = max(self.count, other.count)
        self.cycles = max(self.cycles, other.cycles)

    def parts(self, other: State) -> bool:
        """Whether the two know different results of a condition, kept in a register as 0 or 1."""
        pairs = zip(self.registers[:ANSWERS], other.registers[:ANSWERS], strict=True)
        return any(a != b and a in (0, 1) and b in (0, 1) for a, b in pairs)

    def same(self, other: State) -> bool:
        mine, theirs, end = self.registers, other.registers, len(VALUES)
        return mine[:end] == theirs[:end] and self.words == other.words and same_distances(mine[end:], theirs[end:])


@dataclass
class Way:
    """A state, and the block to continue with."""

    state: State
    at: int
    trail: Trail


class Waiting:
    """Paths by progress. Two that reach the same block in the same iterations of all loops merge."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._ways: dict[Key, Way] = {}
        self._keys: list[Key] = []
        self._visits: dict[int, int] = {}
        self._marks: dict[int, State] = {}

    def __len__(self) -> int:
        return len(self._ways)

    @property
    def ways(self) -> list[Way]:
        return list(self._ways.values())

    def anew(self, order: Order, counted: Callable[[Way], Trail]) -> Waiting:
        """The same paths with a new order of the blocks."""
        fresh = Waiting(order)
        fresh._visits, fresh._marks = self._visits, self._marks
        for way in self.ways:
            fresh.add(Way(way.state, way.at, counted(way)))
        return fresh

    def add(self, way: Way) -> None:
        key = self._key(way)
        met = self._ways.get(key)
        if met is not None and self._apart(met, way):
            key = (*key, APART)
            met = self._ways.get(key)
        if met is not None:
            met.state.join(way.state)
            return
        self._ways[key] = way
        heapq.heappush(self._keys, key)

    def _apart(self, met: Way, way: Way) -> bool:
        """Whether two paths continue separately: at most until a loop iterates."""
        return (not way.trail or way.trail[-1][0] != way.at) and met.state.parts(way.state)

    def behind(self) -> Way:
        way = self._ways.pop(heapq.heappop(self._keys))
        if way.trail and way.trail[-1][0] == way.at:
            self._ends(way)
        return way

    def _key(self, way: Way) -> Key:
        place = self.order.place
        counts = [number for head, count in way.trail for number in (place[head], count)]
        if not way.trail or way.trail[-1][0] != way.at:
            counts.append(place[way.at])
        return tuple(counts)

    def _ends(self, way: Way) -> None:
        """Refuses a loop that returns to its head unchanged or too often: nothing known ends it."""
        visits = self._visits[way.at] = self._visits.get(way.at, 0) + 1
        mark = self._marks.get(way.at)
        if visits > ROUNDS or (mark is not None and mark.same(way.state)):
            raise Refused("input-dependent loop", way.at, "the number of its iterations depends on inputs")
        if visits & (visits - 1) == 0:
            self._marks[way.at] = way.state.fork()
