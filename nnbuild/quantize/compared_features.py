"""Features that decision trees pick from an input and compare one by one.

They have units of their own, so one scale for all of them would blur those of small numbers; and integers would save
nothing, because nothing is multiplied.
"""

from __future__ import annotations

from collections.abc import Collection

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.compare import Compare
from nnbuild.ops.gather import Gather
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.in_floats import BEFORE


def compared_features(graph: Graph) -> set[str]:
    """The operations that pick features of an input and compare them, and the elementwise ones before them."""
    draft, found = GraphEditor(graph), set[str]()
    for op in graph.ops:
        if isinstance(op.attributes, Compare):
            picks = [
                maker for name in op.inputs if (maker := draft.maker(name)) and isinstance(maker.attributes, Gather)
            ]
            ways = [way for pick in picks if (way := _from_input(draft, graph.inputs, pick))]
            if ways:
                found |= {op.name, *(each.name for each in picks), *(each.name for way in ways for each in way)}
    return found


def _from_input(draft: GraphEditor, inputs: Collection[str], pick: Op) -> list[Op]:
    """The operations from an input of floats to this one that picks features; none if others than elementwise ones are
    among them."""
    if len(pick.inputs) != 2 or draft.tensors[pick.inputs[0]].dtype != "float32":
        return []
    way, source = [pick], pick.inputs[0]
    while source not in inputs:
        maker = draft.maker(source)
        if maker is None or not isinstance(maker.attributes, BEFORE) or len(maker.inputs) != 1:
            return []
        way.append(maker)
        source = maker.inputs[0]
    return way
