"""Reads parts of joined tensors where they lay before they were joined, as detectors join boxes and scores, and split
them again before they choose the best: integers have one format for all that is joined."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.slice import Slice
from nnbuild.passes.readers import Readers


def split_joined(graph: Graph) -> Graph:
    readers, ops = Readers(graph), list[Op]()
    for op in graph.ops:
        while (of_part := _of_part(readers, op)) is not None:
            op = of_part
        ops.append(op)
    return replace(graph, ops=tuple(ops))


def _of_part(readers: Readers, op: Op) -> Op | None:
    """A slice of joined tensors as a slice of the one that it takes something of, if there is one."""
    taken, joined = op.attributes, readers.makers.get(op.inputs[0]) if len(op.inputs) == 1 else None
    if not isinstance(taken, Slice) or joined is None or not isinstance(joined.attributes, Concatenate):
        return None
    if op.outer or joined.outer or joined.attributes.clamp != NO_CLAMP:
        return None
    if any(state.before in joined.inputs for state in readers.graph.states):
        return None  # a ring buffer
    axis, begin, tensors = joined.attributes.axis, 0, readers.graph.tensors
    ends = taken.begins[axis], taken.begins[axis] + (taken.counts[axis] - 1) * taken.steps[axis]
    for name in joined.inputs:
        end = begin + readers.shape(name)[axis]
        if begin <= min(ends) and max(ends) < end and tensors[name].quant == tensors[joined.outputs[0]].quant:
            begins = (*taken.begins[:axis], ends[0] - begin, *taken.begins[axis + 1 :])
            return replace(op, attributes=replace(taken, begins=begins), inputs=(name,))
        begin = end
    return None
