"""Ensures that every state can be updated in place: its new value overwrites the old one.

That takes an operation of its own that writes it after all reads of the old value: a later one reads a copy instead.
Elsewhere the new value is copied at the end of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from nnbuild.model.graph import Graph, Op, State, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.lookup import Lookup
from nnbuild.ops.pick import Pick, copy_of
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.running import Running
from nnbuild.ops.shift import Shift
from nnbuild.ops.slice import Slice

DIRECT = (Slice, Concatenate, Activation, Lookup, Pick)
"""Operations that are never chained with others, so they stay where they are."""
IN_PLACE = (Recurrent, Running, Shift)
"""Operations that may read a state and write its next value to the same place."""


def states_in_place(graph: Graph) -> Graph:
    graph = _read_ahead(_output_copies(graph))
    tensors, states = dict(graph.tensors), []
    used = Counter(state.after for state in graph.states)
    befores = {state.before for state in graph.states}
    ahead: list[Op] = []
    late: list[Op] = []
    for state in graph.states:
        after = state.after
        if after != state.before and not (used[after] == 1 and _in_order(graph, state)):
            if after in befores:
                after = _copied(after, tensors, ahead)
            after = _copied(after, tensors, late)
        states.append(replace(state, after=after))
    return replace(graph, tensors=tensors, ops=(*ahead, *graph.ops, *late), states=tuple(states))


def _output_copies(graph: Graph) -> Graph:
    """An output that is an old value, or a view of it, must outlive it: it becomes a copy, made at the beginning."""
    for state in graph.states:
        if _views(graph, state.before).isdisjoint(graph.outputs):
            continue
        held = _unused(f"{state.before}/held", graph.tensors)
        tensor = graph.tensors[state.before]
        copy = Op(f"{held}:op", copy_of(tensor), (held,), (state.before,), layer=state.before)
        states = [replace(other, before=held) if other.before == state.before else other for other in graph.states]
        tensors = {**graph.tensors, held: replace(tensor, name=held)}
        graph = replace(graph, tensors=tensors, ops=(copy, *graph.ops), states=tuple(states))
    return graph


def _views(graph: Graph, name: str) -> set[str]:
    """A tensor and the reshapes of it, which share its place."""
    found = {name}
    for op in graph.ops:
        if isinstance(op.attributes, Reshape) and not found.isdisjoint(op.inputs):
            found.update(op.outputs)
    return found


def _read_ahead(graph: Graph) -> Graph:
    """What reads a state after an operation of `IN_PLACE` reads a copy made before that: so the state itself, which may
    have more bits than its readers, is not copied."""
    tensors = dict(graph.tensors)
    for state in graph.states:
        place = _writer(graph, state)
        if place is None or not isinstance(graph.ops[place].attributes, IN_PLACE):
            continue
        ahead, later = list(graph.ops[:place]), graph.ops[place + 1 :]
        if any(state.before in op.inputs for op in later):
            copy = _copied(state.before, tensors, ahead)
            renamed = (replace(op, inputs=tuple(copy if n == state.before else n for n in op.inputs)) for op in later)
            graph = replace(graph, tensors=tensors, ops=(*ahead, graph.ops[place], *renamed))
    return graph


def _copied(name: str, tensors: dict[str, Tensor], into: list[Op]) -> str:
    made = _unused(f"{name}/kept", tensors)
    tensors[made] = replace(tensors[name], name=made, layer=None)
    into.append(Op(f"{made}:op", copy_of(tensors[name]), (name,), (made,), layer=name))
    return made


def _writer(graph: Graph, state: State) -> int | None:
    return next((index for index, op in enumerate(graph.ops) if state.after in op.outputs), None)


def _in_order(graph: Graph, state: State) -> bool:
    """Whether the new value may overwrite the old one where it is computed."""
    place = _writer(graph, state)
    if place is None:
        return False
    writer = graph.ops[place]
    reads = isinstance(writer.attributes, IN_PLACE)
    if not reads and (not isinstance(writer.attributes, DIRECT) or state.after in graph.outputs):
        return False
    views = _views(graph, state.before)
    later = graph.ops[place + 1 if reads else place :]
    return all(views.isdisjoint(op.inputs) or isinstance(op.attributes, Reshape) for op in later)


def _unused(base: str, names: Mapping[str, object]) -> str:
    name, number = base, 0
    while name in names:
        number += 1
        name = f"{base}_{number}"
    return name
