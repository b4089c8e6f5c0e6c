"""Computes a whole graph in numpy: the reference that generated C is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from nnbuild.graph import Array, Graph, Op

Values = dict[str, Array]


def run(graph: Graph, inputs: Mapping[str, Array], dtype: str = "float32", *, reset_each: bool = False) -> Values:
    """Every tensor of the graph for a batch of samples.

    A graph with states computes its samples in order, carrying the states unless `reset_each`.
    """
    values = {name: np.asarray(inputs[name], dtype) for name in graph.inputs}
    constants = {name: constant.data.astype(dtype) for name, constant in graph.constants.items()}
    count = len(next(iter(values.values()))) if values else 1
    if not graph.states:
        return _run_batch(graph, values, constants)
    zeros = {state.before: np.zeros((1, *graph.tensors[state.before].shape), dtype) for state in graph.states}
    carried = dict(zeros)
    rows = []
    for index in range(count):
        sample = {name: value[index : index + 1] for name, value in values.items()}
        row = _run_batch(graph, sample | carried, constants)
        carried = dict(zeros) if reset_each else {s.before: row[s.after] for s in graph.states}
        rows.append(row)
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]} if rows else {}


def _run_batch(graph: Graph, values: Mapping[str, Array], constants: Mapping[str, Array]) -> Values:
    result = dict(values)
    for op in graph.ops:
        own = {role: constants[name] for role, name in op.constants.items()}
        outputs = compute(op, [result[name] for name in op.inputs], own)
        result.update(zip(op.outputs, outputs, strict=True))
    return result


def compute(op: Op, inputs: list[Array], constants: Mapping[str, Array]) -> tuple[Array, ...]:
    """One operation; the axes of `op.outer` are computed as if they were more samples."""
    count, depth = inputs[0].shape[0], len(op.outer)
    merged = [x.reshape(count * prod(op.outer), *x.shape[1 + depth :]) for x in inputs]
    outputs = op.attributes.reference(merged, constants)
    return tuple(y.reshape(count, *op.outer, *y.shape[1:]) for y in outputs)
