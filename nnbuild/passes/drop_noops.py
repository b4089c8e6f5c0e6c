"""Removes operations without effect: layers that only act in training, and the like."""

from __future__ import annotations

from math import inf

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.convert import Convert
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.graph_editor import GraphEditor

NOTHING = (("linear", ()), ("clamp", (-inf, inf)))


def drop_noops(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        if len(op.inputs) == 1 and _changes_nothing(draft, op):
            draft.bypass(op)
    return draft.finish()


def _changes_nothing(draft: GraphEditor, op: Op) -> bool:
    before, after = draft.tensors[op.inputs[0]], draft.tensors[op.outputs[0]]
    if (before.dtype, before.quant) != (after.dtype, after.quant):
        return False
    same_shape = before.shape == after.shape
    match op.attributes:
        case Activation(function, parameters):
            return (function, parameters) in NOTHING
        case Pick(places):
            return all(chosen is None for chosen in places)
        case Transpose(order):
            return order == tuple(range(len(order)))
        case Slice(_, steps, counts):
            return same_shape and all(step > 0 or count == 1 for step, count in zip(steps, counts, strict=True))
        case Reshape() | Pad() | Repeat() | Convert():
            return same_shape
        case _:
            return False
