"""Fuses L2 normalization, which model files spell as x * rsqrt(sum of squares), into one operation for integers.

Computed one by one, the reciprocal of a small length would need a range that leaves no resolution for all others, and
that of a zero vector has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape

MIN_SQUARED_NORM = 1e-12
"""Added to the squared length where the file adds nothing; Keras uses the same bound."""


def fuse_l2_normalize(graph: Graph) -> Graph:
    """The graph with `LayerNorm`s in place of L2 normalizations along the last axis."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    readers: dict[str, list[Op]] = {}
    for op in graph.ops:
        for name in op.inputs:
            readers.setdefault(name, []).append(op)
    constants, ops = dict(graph.constants), list(graph.ops)
    for index, op in enumerate(graph.ops):
        found = _find_norm(graph, op, makers)
        if found is None:
            continue
        x, steps, epsilon = found
        kept = {name for step in steps for name in step.outputs} & set(graph.outputs)
        if kept or any(reader not in (*steps, op) for step in steps for reader in readers[step.outputs[0]]):
            continue
        size = graph.tensors[x].shape[-1]
        name = f"{op.name}/length"
        constants[name] = Constant(name, np.full((size,), 1 / np.sqrt(size), np.float32))
        whole = LayerNorm(1, epsilon / size, centred=False)
        ops[index] = replace(op, attributes=whole, inputs=(x,), constants={"scale": name})
        ops = [other for other in ops if other not in steps]  # later operations are found by name
        return fuse_l2_normalize(_drop_unused(replace(graph, ops=tuple(ops), constants=constants)))
    return graph


def _drop_unused(graph: Graph) -> Graph:
    """Removes tensors and constants that nothing produces or reads any more."""
    made = {*graph.inputs, *(s.before for s in graph.states), *(name for op in graph.ops for name in op.outputs)}
    held = {name for op in graph.ops for name in op.constants.values()}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in made}
    return replace(graph, tensors=tensors, constants={n: c for n, c in graph.constants.items() if n in held})


def _find_norm(graph: Graph, op: Op, makers: dict[str, Op]) -> tuple[str, Sequence[Op], float] | None:
    """(vectors, operations from their squares to the reciprocals, what is added to the squares), or None"""
    if not (isinstance(op.attributes, Binary) and op.attributes.function == "multiply" and len(op.inputs) == 2):
        return None
    if op.outer or op.attributes.clamp.low is not None or op.attributes.clamp.high is not None:
        return None
    for x, factor in (op.inputs, op.inputs[::-1]):
        steps, epsilon = _norm_ops(graph, x, factor, makers)
        if steps:
            return x, steps, epsilon
    return None


def _norm_ops(graph: Graph, x: str, name: str, makers: dict[str, Op]) -> tuple[list[Op], float]:
    """The operations from the factor back to the squares of x; empty where it is something else."""
    shape, steps, epsilon, rooted = graph.tensors[x].shape, list[Op](), MIN_SQUARED_NORM, False
    if graph.tensors[name].quant is not None or graph.tensors[name].shape not in ((*shape[:-1], 1), (1,)):
        return [], 0.0
    while name in makers and not makers[name].outer:
        op = makers[name]
        steps.append(op)
        match op.attributes:
            case Activation("square", _) if op.inputs == (x,) and isinstance(steps[-2].attributes, Reduce):
                return (steps, epsilon) if rooted else ([], 0.0)
            case Activation("rsqrt", _):
                rooted = True
            case Binary(function, _) if len(op.inputs) == 1 and function in ("minimum", "maximum", "add"):
                (bound,) = (graph.constants[c].data for c in op.constants.values())
                if bound.size != 1 or bound.item() <= 0 or (function == "minimum") == rooted:
                    return [], 0.0
                epsilon = bound.item() if function != "minimum" else max(MIN_SQUARED_NORM, float(bound.item()) ** -2.0)
            case Reduce("sum", axis, 1, _) if axis == len(shape) - 1 and graph.tensors[op.inputs[0]].shape == shape:
                pass
            case Reshape() if prod(graph.tensors[name].shape) == prod(shape[:-1]):
                pass
            case _:
                return [], 0.0
        name = op.inputs[0]
    return [], 0.0
