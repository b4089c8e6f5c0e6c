"""What a legal graph is. Runs after the frontend and after every pass, always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from nnbuild.errors import ModelError
from nnbuild.graph import Graph, Op, Shape

DTYPES = ("float32", "int8", "int16", "int32", "int64")
REPORT = "Please report this model: nnbuild built a graph that its own rules refuse."


def verify(graph: Graph) -> Graph:
    """The graph itself when it is legal; ModelError with the layer and the cause when not."""
    for layer, cause in _faults(graph):
        raise ModelError(f"layer {layer!r}" if layer else f"model {graph.name!r}", cause, REPORT)
    return graph


def _faults(graph: Graph) -> Iterator[tuple[str, str]]:
    yield from _broken_names(graph)
    yield from _broken_order(graph)
    for op in graph.ops:
        yield from ((op.layer or op.name, cause) for cause in _broken_op(graph, op))
    yield from _broken_states(graph)
    for constant in graph.constants.values():
        if constant.data.dtype.kind == "f" and not np.isfinite(constant.data).all():
            yield "", f"the constant {constant.name!r} holds values that are not finite."


def _broken_names(graph: Graph) -> Iterator[tuple[str, str]]:
    for name, count in Counter(op.name for op in graph.ops).items():
        if count > 1:
            yield name, "two operations have this name."
    for mapping in (graph.tensors, graph.constants):
        for name, value in mapping.items():
            if value.name != name:
                yield "", f"{name!r} is filed under another name."
    for tensor in graph.tensors.values():
        if tensor.dtype not in DTYPES:
            yield "", f"the tensor {tensor.name!r} has the unknown type {tensor.dtype!r}."
        if not all(isinstance(n, int) and n > 0 for n in tensor.shape):
            yield "", f"the tensor {tensor.name!r} has the shape {tensor.shape}."


def _broken_order(graph: Graph) -> Iterator[tuple[str, str]]:
    known = {*graph.inputs, *(state.before for state in graph.states)}
    for op in graph.ops:
        for name in op.inputs:
            if name not in known:
                yield op.layer or op.name, f"it reads {name!r} before anything has computed it."
        for name in op.outputs:
            if name in known:
                yield op.layer or op.name, f"it computes {name!r}, which is there already."
            known.add(name)
    for name in (*graph.outputs, *(state.after for state in graph.states)):
        if name not in known:
            yield "", f"nothing computes {name!r}."
    for name in known:
        if name not in graph.tensors:
            yield "", f"the tensor {name!r} is not described."


def _broken_op(graph: Graph, op: Op) -> Iterator[str]:
    attributes = op.attributes
    for role in attributes.required:
        if role not in op.constants:
            yield f"its {role} is missing."
            return
    for role, name in op.constants.items():
        if role not in attributes.required + attributes.optional:
            yield f"a {attributes.kind} operation has no {role}."
            return
        if name not in graph.constants:
            yield f"its {role} {name!r} is not among the constants."
            return
    inputs = [graph.tensors[name].shape for name in op.inputs]
    if any(shape[: len(op.outer)] != op.outer for shape in inputs):
        yield f"its inputs {inputs} do not begin with the axes {op.outer} it is applied along."
        return
    try:
        shapes = attributes.shapes([shape[len(op.outer) :] for shape in inputs], constant_shapes(graph, op))
    except ValueError as error:
        yield str(error)
        return
    stated = tuple(graph.tensors[name].shape for name in op.outputs)
    if tuple(op.outer + shape for shape in shapes) != stated:
        yield f"its outputs are {shapes}, not {stated}."


def _broken_states(graph: Graph) -> Iterator[tuple[str, str]]:
    for state in graph.states:
        before, after = graph.tensors[state.before], graph.tensors[state.after]
        if (before.shape, before.dtype, before.quant) != (after.shape, after.dtype, after.quant):
            yield "", f"the state {state.before!r} is not of the kind of {state.after!r} that follows it."


def constant_shapes(graph: Graph, op: Op) -> dict[str, Shape]:
    return {role: graph.constants[name].data.shape for role, name in op.constants.items()}
