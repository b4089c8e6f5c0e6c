"""Whole numbers that come as floats, such as the indices of an Embedding: a scale would make other numbers of them."""

from __future__ import annotations

from collections.abc import Collection

from nnbuild.model.graph import Graph
from nnbuild.ops.compare import Compare
from nnbuild.ops.convert import Convert
from nnbuild.ops.gather import Gather
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.from_inputs import from_inputs
from nnbuild.quantize.in_floats import with_producers


def whole_from_floats(graph: Graph) -> set[str]:
    """The operations that make whole numbers of floats, those from the inputs or from tables of constants to them, or
    the elementwise ones before them, and comparisons of the inputs that they read: masks."""
    draft = GraphEditor(graph)
    made = [
        op
        for op in graph.ops
        if isinstance(op.attributes, Convert)
        and graph.tensors[op.outputs[0]].is_whole
        and graph.tensors[op.inputs[0]].quant is None
    ]
    found = with_producers(draft, [op.name for op in made])
    found |= {each.name for op in made for each in from_inputs(draft, op)}
    for op in reversed(graph.ops):
        if isinstance(op.attributes, Gather) and any(reader.name in found for reader in draft.readers(op.outputs[0])):
            found |= with_producers(draft, [op.name])
    inputs = read_by(graph, found)
    compared = {op.name for op in graph.ops if isinstance(op.attributes, Compare) and inputs.issuperset(op.inputs)}
    return found | compared


def read_by(graph: Graph, names: Collection[str]) -> set[str]:
    """The inputs of the model that these operations read."""
    return {name for op in graph.ops if op.name in names for name in op.inputs if name in graph.inputs}
