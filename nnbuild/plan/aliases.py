"""Aliases: the tensor in whose storage (root) another one lies, because it is a reshape, a part, or joined to it."""

from __future__ import annotations

from math import prod

from nnbuild.model.graph import Graph
from nnbuild.ops.reshape import Join, Part, Reshape


def roots_of(graph: Graph) -> dict[str, str]:
    """Tensor -> the tensor whose storage it shares: views, and states updated in place."""
    return {name: root for name, (root, _) in _roots_and_offsets(graph).items()}


def offsets_of(graph: Graph) -> dict[str, int]:
    """Tensor -> its byte offset in that storage."""
    return {name: offset for name, (_, offset) in _roots_and_offsets(graph).items()}


def partially_aliased(graph: Graph) -> frozenset[str]:
    """Storage of which some tensors are only a part, so that nothing else may overlap any of it meanwhile."""
    views = [op for op in graph.ops if isinstance(op.attributes, Part | Join)]
    roots = roots_of(graph)
    return frozenset(roots[name] for op in views for name in (*op.inputs, *op.outputs))


def _roots_and_offsets(graph: Graph) -> dict[str, tuple[str, int]]:
    upon: dict[str, tuple[str, int]] = {state.after: (state.before, 0) for state in graph.states}
    upon = {name: place for name, place in upon.items() if place[0] != name}
    for op in graph.ops:
        view = op.attributes
        if isinstance(view, Join):
            at = 0
            for name in op.inputs:
                upon[name] = op.outputs[0], at
                at += graph.tensors[name].nbytes
        elif isinstance(view, Reshape):
            tensor = graph.tensors[op.inputs[0]]
            begin = view.begin * (tensor.nbytes // prod(tensor.shape)) if isinstance(view, Part) else 0
            upon[op.outputs[0]] = op.inputs[0], begin
    found = {}
    for name in graph.tensors:
        root, offset = name, 0
        while root in upon:
            root, more = upon[root]
            offset += more
        found[name] = root, offset
    return found
