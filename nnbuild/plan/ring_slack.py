"""Rings with spare rows: from run to run they lie a step further on, and only once in so many runs do their rows move
back to the front. How many spare rows which ring gets is chosen by what that saves and by the memory it takes.

A ring whose rows are written twice would never move, but it takes more memory than one with as many spare rows as it
holds, and writes more: of R rows, h of them new, that one takes 2R - h and moves R - h of them in R / h runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from nnbuild.model.graph import Graph, Op, State
from nnbuild.ops.shift import Shift
from nnbuild.plan.aliases import roots_of
from nnbuild.plan.target import Target

TURNS = (2, 4, 8)
"""Runs after which rows may move. All rings of a model share one count."""
MAX_SHARE = 4
"""Spare rows take at most one part in so many of all states."""
MIN_SAVED_BYTES = 128
"""Bytes whose move costs as much as an address that changes from run to run, and the count."""


@dataclass(frozen=True)
class RingSlack:
    """`turns` runs after which the rows move to the front; in each they lie `pitch` bytes further on."""

    turns: int
    pitch: int

    @property
    def size(self) -> int:
        return (self.turns - 1) * self.pitch


@dataclass(frozen=True)
class _Ring:
    op: Op
    pitch: int
    moved: int


def ring_slack(graph: Graph) -> Mapping[str, RingSlack]:
    """State -> its spare rows, of rings that have some."""
    found = {}
    for state in graph.states:
        op = _maker(graph, state)
        if op is not None and isinstance(op.attributes, Shift) and op.attributes.turns > 1:
            found[state.before] = RingSlack(op.attributes.turns, graph.tensors[op.inputs[1]].nbytes)
    return found


def add_ring_slack(graph: Graph, target: Target) -> Graph:
    alone = target.cores.count == 1 and target.cores.local is None and target.device is None
    plain = not target.keep_tensors and not target.chunked and target.max_ram is None
    if target.optimize != "speed" or not alone or not plain or any(state.banks > 1 for state in graph.states):
        return graph
    rings = [ring for state in graph.states if (ring := _ring(graph, state, target.alignment)) is not None]
    rings.sort(key=lambda ring: ring.pitch / ring.moved)
    room = sum(graph.tensors[state.before].nbytes for state in graph.states) // MAX_SHARE
    offers = {turns: _fitting(rings, (turns - 1), room) for turns in TURNS}
    turns = max(TURNS, key=lambda n: _bytes_saved(offers[n], n))
    if _bytes_saved(offers[turns], turns) < MIN_SAVED_BYTES:
        return graph
    taken = {ring.op.name for ring in offers[turns]}
    ops = tuple(
        replace(op, attributes=replace(op.attributes, turns=turns))
        if op.name in taken and isinstance(op.attributes, Shift)
        else op
        for op in graph.ops
    )
    return replace(graph, ops=ops)


def _fitting(rings: list[_Ring], rows: int, room: int) -> list[_Ring]:
    """Those that fit, the ones first that move most for what they take."""
    taken = []
    for ring in rings:
        if rows * ring.pitch <= room:
            room -= rows * ring.pitch
            taken.append(ring)
    return taken


def _bytes_saved(rings: list[_Ring], turns: int) -> float:
    """Bytes a run."""
    return sum(ring.moved for ring in rings) * (turns - 1) / turns


def _maker(graph: Graph, state: State) -> Op | None:
    return next((op for op in graph.ops if state.after in op.outputs), None)


def _ring(graph: Graph, state: State, alignment: int) -> _Ring | None:
    """A state whose rows lie in one piece, and of which nothing but its move sees the old ones."""
    op = _maker(graph, state)
    if op is None or not isinstance(op.attributes, Shift) or op.outer or op.inputs[0] != state.before:
        return None
    readers = [each.name for each in graph.ops if state.before in each.inputs]
    used = [each for each in graph.states if state.after in (each.before, each.after)]
    roots = roots_of(graph)  # outputs are read behind the run, when it is the next one's turn
    if readers != [op.name] or state.before in (roots[name] for name in graph.outputs) or len(used) != 1:
        return None
    before, new = graph.tensors[state.before], graph.tensors[op.inputs[1]]
    moved = before.nbytes - new.nbytes
    if prod(before.shape[: op.attributes.axis]) > 1 or new.nbytes % alignment or moved < MIN_SAVED_BYTES:
        return None
    return _Ring(op, new.nbytes, moved)
