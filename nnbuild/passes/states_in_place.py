"""Ensures that every state can be updated in place: its new value overwrites the old one.

That takes an operation of its own that writes it after all reads of the old value. Elsewhere the new value is copied at
the end of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from nnbuild.model.graph import Graph, Op, State
from nnbuild.ops.activation import Activation
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.pick import Pick, copy_of
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.running import Running
from nnbuild.ops.shift import Shift
from nnbuild.ops.slice import Slice

DIRECT = (Slice, Concatenate, Activation, Pick)
"""Operations that are never chained with others, so they stay where they are."""
IN_PLACE = (Recurrent, Running, Shift)
"""Operations that may read a state and write its next value to the same place."""


def states_in_place(graph: Graph) -> Graph:
    tensors, ops, states = dict(graph.tensors), list(graph.ops), []
    used = Counter(state.after for state in graph.states)
    befores = {state.before for state in graph.states}
    late: list[Op] = []

    def copied(name: str, into: list[Op]) -> str:
        made = _unused(f"{name}/kept", tensors)
        tensors[made] = replace(tensors[name], name=made, layer=None)
        into.append(Op(f"{made}:op", copy_of(tensors[name]), (name,), (made,), layer=name))
        return made

    for state in graph.states:
        after = state.after
        if after != state.before and not (used[after] == 1 and _in_order(graph, state)):
            if after in befores:
                after = copied(after, ops)
            after = copied(after, late)
        states.append(replace(state, after=after))
    return replace(graph, tensors=tensors, ops=(*ops, *late), states=tuple(states))


def _in_order(graph: Graph, state: State) -> bool:
    """Whether the new value may overwrite the old one where it is computed."""
    place = next((i for i, op in enumerate(graph.ops) if state.after in op.outputs), None)
    if place is None:
        return False
    writer = graph.ops[place]
    if isinstance(writer.attributes, IN_PLACE):
        return True
    if not isinstance(writer.attributes, DIRECT) or state.after in graph.outputs:
        return False
    views = {state.before}
    for index, op in enumerate(graph.ops):
        if views.isdisjoint(op.inputs):
            continue
        if isinstance(op.attributes, Reshape):
            views.update(op.outputs)
        elif index >= place:
            return False
    return views.isdisjoint(graph.outputs)


def _unused(base: str, names: Mapping[str, object]) -> str:
    name, number = base, 0
    while name in names:
        number += 1
        name = f"{base}_{number}"
    return name
