"""A sum of n elements, divided by n, is their mean."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, prod

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.binary import Binary
from nnbuild.ops.reduce import Reduce
from nnbuild.passes.graph_editor import GraphEditor

CLOSE = 1e-6


def name_means(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        before = draft.only_producer(op)
        if before is None or not isinstance(before.attributes, Reduce) or before.attributes.function != "sum":
            continue
        elements = prod(draft.shape(before, before.inputs[0])) / prod(draft.shape(before, before.outputs[0]))
        share = _share(draft, op)
        if share is not None and isclose(share * elements, 1, rel_tol=CLOSE):
            draft.absorb(replace(before, attributes=replace(before.attributes, function="mean")), op)
    return draft.finish()


def _share(draft: GraphEditor, op: Op) -> float | None:
    """What the operation multiplies by, if that is one number."""
    binary = op.attributes
    if not isinstance(binary, Binary) or binary.clamp != NO_CLAMP or len(op.constants) != 1:
        return None
    ((role, name),) = op.constants.items()
    data = draft.constants[name].data
    if data.size != 1 or data.item() == 0 or draft.tensors[op.inputs[0]].shape != draft.tensors[op.outputs[0]].shape:
        return None
    if binary.function == "multiply":
        return float(data.item())
    return 1 / float(data.item()) if binary.function == "divide" and role == "right" else None
