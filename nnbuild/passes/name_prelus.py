"""relu(x) - slope * relu(-x), as converters write it, is a leaky ReLU with a slope for each channel."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import inf

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.prelu import PReLU
from nnbuild.passes.additions import Additions
from nnbuild.passes.readers import Readers, computes
from nnbuild.passes.remove_dead import remove_dead

RELU, NEGATED = Activation("clamp", (0.0, inf)), Activation("negative")


def name_prelus(graph: Graph) -> Graph:
    readers, new, ops = Readers(graph), Additions(graph), list[Op]()
    for op in graph.ops:
        found = _prelu(readers, op)
        if found is not None:
            x, slope = found
            made = new.op(
                op, PReLU(), x, slope=slope.reshape((1,) * (len(readers.shape(x)) - slope.ndim) + slope.shape)
            )
            op = replace(made, outputs=op.outputs)
        ops.append(op)
    return remove_dead(new.finish(ops))


def _prelu(readers: Readers, op: Op) -> tuple[str, Array] | None:
    """The tensor, and the slopes of what is below 0."""
    less = computes(op, "subtract", 2)
    if not less and not computes(op, "add", 2):
        return None
    for above, below in (op.inputs,) if less else permutations(op.inputs):
        positive, scaled = readers.inner(above), readers.inner(below)
        if positive is None or positive.attributes != RELU or scaled is None or not computes(scaled, "multiply", 1):
            continue
        negative = readers.inner(scaled.inputs[0])
        if negative is None or negative.attributes != RELU:
            continue
        turned = readers.inner(negative.inputs[0])
        x = positive.inputs[0]
        ((_, name),) = scaled.constants.items()
        slope = readers.graph.constants[name].data * np.float32(1 if less else -1)
        alike = turned is not None and turned.attributes == NEGATED and turned.inputs == (x,)
        if alike and readers.shape(x) == readers.shape(op.outputs[0]) and slope.ndim <= len(readers.shape(x)):
            return x, slope
    return None
