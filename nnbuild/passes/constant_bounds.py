"""Turns maxima and minima with one number into clamps: a maximum with zeros is a ReLU."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.binary import Binary
from nnbuild.passes.graph_editor import GraphEditor

LARGEST = float(np.finfo(np.float32).max)
"""What bounds nothing: exporters write it for infinity."""


def constant_bounds(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        bounds = _bounds(draft, op)
        if bounds is not None:
            draft.change(replace(op, attributes=Activation("clamp", bounds), constants={}))
    return draft.finish()


def _bounds(draft: GraphEditor, op: Op) -> tuple[float, float] | None:
    match op.attributes, op.inputs:
        case Binary("maximum" | "minimum" as function, clamp), (source,) if clamp == NO_CLAMP and not op.outer:
            before, after = draft.tensors[source], draft.tensors[op.outputs[0]]
        case _:
            return None
    if (before.dtype, before.quant, before.shape) != ("float32", None, after.shape):
        return None
    (values,) = (draft.constants[name].data.reshape(-1) for name in op.constants.values())
    if not values.size or isnan(values[0]) or (values != values[0]).any():
        return None
    bound = float(values[0])
    if function == "maximum":
        return (bound if bound > -LARGEST else -inf, inf)
    return (-inf, bound if bound < LARGEST else inf)
