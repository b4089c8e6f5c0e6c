"""Merges a clamp (ReLU, ReLU6) into the operation before it."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf
from typing import Any

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.passes.graph_editor import GraphEditor


def merge_clamps(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        before, clamp = draft.only_producer(op), clamp_of(op)
        if before is not None and clamp is not None and _in_floats(draft, op):
            attributes = _clamped(before.attributes, clamp)
            if attributes is not None:
                draft.absorb(replace(before, attributes=attributes), op)
    return draft.finish()


def _in_floats(draft: GraphEditor, op: Op) -> bool:
    """Integers are clamped in their own steps."""
    return all(draft.tensors[name].quant is None for name in (*op.inputs, *op.outputs))


def clamp_of(op: Op) -> Clamp | None:
    """The bounds of a clamping activation; None for any other operation."""
    if not isinstance(op.attributes, Activation) or op.attributes.function != "clamp":
        return None
    low, high = op.attributes.parameters
    return Clamp(None if low == -inf else low, None if high == inf else high)


def _clamped(attributes: Attributes, clamp: Clamp) -> Attributes | None:
    """The attributes with a further clamp, or None where the operation cannot clamp."""
    if isinstance(attributes, Activation) and attributes.function == "clamp":
        low, high = attributes.parameters
        both = Clamp(low, high).merged(clamp)
        assert both.low is not None and both.high is not None
        return Activation("clamp", (both.low, both.high))
    if not any(field.name == "clamp" for field in fields(attributes)):
        return None
    changed: Any = attributes
    merged: Attributes = replace(changed, clamp=changed.clamp.merged(clamp))
    return merged
