"""Takes the ranges that a model was trained with (fake quantization): they are its scales, whatever calibration
finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.passes.merge_clamps import merge_clamps
from nnbuild.quantize.calibrate import Ranges

STEPS = ("steps", "even_steps")
FINE = 254
"""The fewest steps between the ends of a range in 8 bits. Fewer are a table of their own."""


def fake_quantized(graph: Graph) -> Iterator[tuple[Op, float, float]]:
    """(operation, smallest value, largest value) of each fake quantization"""
    for op in graph.ops:
        if isinstance(op.attributes, Activation) and op.attributes.function in STEPS:
            yield op, op.attributes.parameters[0], op.attributes.parameters[1]


def with_trained_ranges(graph: Graph, ranges: Ranges) -> Ranges:
    """The calibrated ranges, replaced by the trained ones where there are any."""
    found = dict(ranges)
    for op, low, high in fake_quantized(graph):
        for name in (*op.inputs, *op.outputs):
            found[name] = replace(found[name], low=low, high=high)
    return found


def in_trained_ranges(graph: Graph, form: str) -> Graph:
    """The graph with integers in place of fake quantization. Those of 8 bits end where the trained ranges do; those of
    16 bits are symmetric about zero and reach further, so they are held within them."""
    if form == "int16":
        held = {op.name: Activation("clamp", (low, high)) for op, low, high in fake_quantized(graph)}
        held = {op.name: held[op.name] for op in graph.ops if op.name in held and op.inputs[0] not in graph.inputs}
        ops = [replace(op, attributes=held.get(op.name, op.attributes)) for op in graph.ops]
        graph = merge_clamps(replace(graph, ops=tuple(ops))) if held else graph
    return _without_fake_quantization(graph, form)


def _without_fake_quantization(graph: Graph, form: str) -> Graph:
    for op, low, high in fake_quantized(graph):
        assert isinstance(op.attributes, Activation)
        if form == "int8" and high - low < FINE * op.attributes.parameters[2]:
            continue
        op = next(now for now in graph.ops if now.name == op.name)  # the previous removal may have changed names
        (x,), (y,) = op.inputs, op.outputs
        if x in graph.inputs or x in graph.outputs or any(x in (s.before, s.after) for s in graph.states):
            if y in graph.outputs:
                continue  # a copy is needed
            graph = _without(graph, op, y, x)
        elif sum(x in other.inputs for other in graph.ops) == 1:
            graph = _without(graph, op, x, y)
    return graph


def _without(graph: Graph, op: Op, old: str, new: str) -> Graph:
    """Removes the operation; `old` becomes `new`."""

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    ops = [
        replace(other, inputs=renamed(other.inputs), outputs=renamed(other.outputs))
        for other in graph.ops
        if other is not op
    ]
    states = tuple(replace(s, after=new if s.after == old else s.after) for s in graph.states)
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != old}
    return replace(graph, ops=tuple(ops), states=states, tensors=tensors)
