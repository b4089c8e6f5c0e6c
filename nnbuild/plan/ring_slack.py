"""Ring buffers with slack: each run they lie one step further on, and their rows move back to the front only once in so
many runs. The slack of each ring is chosen by the copying it saves and the memory it takes.

A ring whose rows are written twice would never move, but it takes more memory than one with as much slack as it holds
rows, and writes more: with R rows, h of them new, the latter takes 2R - h rows and moves R - h of them in R / h runs.
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
"""Candidates for the number of runs between moves. All rings of a model share one."""
MAX_SHARE = 4
"""Slack takes at most this fraction (1/n) of all states."""
MIN_SAVED_BYTES = 128
"""Bytes whose copying costs as much as an address that changes with each run, and the counter for it."""


@dataclass(frozen=True)
class RingSlack:
    """After `turns` runs the rows move to the front; in each run they lie `pitch` bytes further on."""

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
    """State -> its slack, for rings that have some."""
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
    """The rings whose slack fits, those first that move most for it."""
    taken = []
    for ring in rings:
        if rows * ring.pitch <= room:
            room -= rows * ring.pitch
            taken.append(ring)
    return taken


def _bytes_saved(rings: list[_Ring], turns: int) -> float:
    """Bytes not moved, per run."""
    return sum(ring.moved for ring in rings) * (turns - 1) / turns


def _maker(graph: Graph, state: State) -> Op | None:
    return next((op for op in graph.ops if state.after in op.outputs), None)


def _ring(graph: Graph, state: State, alignment: int) -> _Ring | None:
    """The ring of a state whose rows are contiguous and whose old value only the shift reads; None for others."""
    op = _maker(graph, state)
    if op is None or not isinstance(op.attributes, Shift) or op.outer or op.inputs[0] != state.before:
        return None
    readers = [each.name for each in graph.ops if state.before in each.inputs]
    used = [each for each in graph.states if state.after in (each.before, each.after)]
    roots = roots_of(graph)  # outputs are read after the run, when the ring has already moved on
    if readers != [op.name] or state.before in (roots[name] for name in graph.outputs) or len(used) != 1:
        return None
    before, new = graph.tensors[state.before], graph.tensors[op.inputs[1]]
    moved = before.nbytes - new.nbytes
    if prod(before.shape[: op.attributes.axis]) > 1 or new.nbytes % alignment or moved < MIN_SAVED_BYTES:
        return None
    return _Ring(op, new.nbytes, moved)
