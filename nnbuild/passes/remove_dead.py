"""Removes what no output and no state needs."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph


def remove_dead(graph: Graph) -> Graph:
    ends = {name for state in graph.states for name in (state.before, state.after)}
    needed = {*graph.outputs, *ends}
    kept = []
    for op in reversed(graph.ops):
        if needed.intersection(op.outputs):
            needed.update(op.inputs)
            kept.append(op)
    kept.reverse()
    tensors = {*graph.inputs, *needed, *(name for op in kept for name in op.outputs)}
    constants = {name for op in kept for name in op.constants.values()}
    constants |= {state.initial for state in graph.states if state.initial is not None}
    return replace(
        graph,
        ops=tuple(kept),
        tensors={name: tensor for name, tensor in graph.tensors.items() if name in tensors},
        constants={name: constant for name, constant in graph.constants.items() if name in constants},
    )
