"""A sum of n elements, divided by n, is their mean."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, prod

from nnbuild.model.graph import Graph
from nnbuild.ops.reduce import Reduce
from nnbuild.passes.graph_editor import GraphEditor, factor_of

CLOSE = 1e-6


def name_means(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        before = draft.only_producer(op)
        if before is None or not isinstance(before.attributes, Reduce) or before.attributes.function != "sum":
            continue
        elements = prod(draft.shape(before, before.inputs[0])) / prod(draft.shape(before, before.outputs[0]))
        share = factor_of(draft, op)
        if share is not None and isclose(share * elements, 1, rel_tol=CLOSE):
            draft.absorb(replace(before, attributes=replace(before.attributes, function="mean")), op)
    return draft.finish()
