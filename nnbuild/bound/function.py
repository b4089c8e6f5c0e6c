"""One function of the program: its blocks in order, and the counts from following it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nnbuild.bound.block import Blocks
from nnbuild.bound.block_order import Order, order
from nnbuild.bound.state import Trail


class Step(NamedTuple):
    """The effect of an edge between two blocks on the iteration counts."""

    kept: int
    heads: tuple[int, ...]
    again: bool
    """Whether it leads back to the head of a surrounding loop."""


@dataclass
class Function:
    """`found` are the edges between its blocks, `beyond` those that the code alone does not show: from a jump table,
    or back past a table after a call."""

    entry: int
    blocks: Blocks
    found: dict[int, tuple[int, ...]] = field(default_factory=dict)
    beyond: dict[int, tuple[int, ...]] = field(default_factory=dict)
    order: Order = field(default_factory=Order)
    steps: dict[tuple[int, int], Step | None] = field(default_factory=dict)
    rounds: dict[int, int] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    """Heads of loops that were discovered while following them, so that earlier iterations may not be counted."""
    calls: int = 0
    worst: int = 0
    total: int = 0
    cycles: int = 0
    followed: int = 0
    """Number of calls that were followed rather than answered by a summary."""
    parted: int = 0
    """Number of unknown conditions in it and its callees."""

    def __post_init__(self) -> None:
        self._survey()

    def _survey(self) -> None:
        """Orders the blocks, again when more of them become known."""
        starts = [self.entry, *(target for targets in self.beyond.values() for target in targets)]
        for start in starts:
            self.blocks.explore(start)
        graph: dict[int, tuple[int, ...]] = {}
        waiting = starts[::-1]
        while waiting:
            address = waiting.pop()
            if address not in graph:
                known = self.blocks.at(address).targets
                graph[address] = tuple(dict.fromkeys((*known, *self.beyond.get(address, ()))))
                waiting += reversed(graph[address])
        self.found, self.order, self.steps = graph, order(graph, self.entry), {}

    def step(self, origin: int, target: int, trail: Trail) -> Trail:
        """The iteration counts after an edge from one block to the next."""
        try:
            step = self.steps[origin, target]
        except KeyError:
            if target not in self.found.get(origin, ()):
                self.beyond[origin] = (*self.beyond.get(origin, ()), target)
                self._survey()
                self._doubt(origin, trail)
                trail = self.counted(origin, trail)
            step = self.steps[origin, target] = _step_between(self.order, origin, target)
        if step is None:
            return trail
        if not step.again:
            for head in step.heads:
                self.rounds.setdefault(head, 1)
            return (*trail[: step.kept], *((head, 1) for head in step.heads))
        head, count = trail[step.kept]
        if count >= self.rounds[head]:
            self.rounds[head] = count + 1
        return (*trail[: step.kept], (head, count + 1))

    def _doubt(self, at: int, trail: Trail) -> None:
        """Marks loops around a block whose iterations may have passed before they were known."""
        before, now = {head for head, _ in trail}, set(self.order.heads[at])
        self.doubtful |= {head for head in now - before if head in self.rounds or before - now}

    def counted(self, at: int, trail: Trail) -> Trail:
        """The iteration counts at a block; loops that were unknown before start from one."""
        known = dict(trail)
        heads = self.order.heads[at]
        for head in heads:
            self.rounds.setdefault(head, 1)
        return tuple((head, known.get(head, 1)) for head in heads)

    def count_call(self, instructions: int, cycles: int) -> None:
        self.calls += 1
        self.total += instructions
        self.worst = max(self.worst, instructions)
        self.cycles = max(self.cycles, cycles)


def _step_between(order: Order, origin: int, target: int) -> Step | None:
    before, behind = order.heads[origin], order.heads[target]
    kept = 0
    while kept < min(len(before), len(behind)) and before[kept] == behind[kept]:
        kept += 1
    if kept == len(behind) and behind and behind[-1] == target:
        return Step(kept - 1, (), True)
    return None if before == behind else Step(kept, behind[kept:], False)
