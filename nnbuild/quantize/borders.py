"""Ranges that hold the numbers which pads put around them: a padded tensor keeps its input's format."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.pad import Pad
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.rewrite import has_own_format, same_scale

FARTHEST = 100.0
"""Beyond so many times the largest value, a border is a bound, as that of a maximum, and need not be held."""


def with_borders(graph: Graph, ranges: Ranges) -> Ranges:
    found = dict(ranges)
    makers = {name: op for op in graph.ops for name in op.outputs}
    for op in graph.ops:
        if not isinstance(op.attributes, Pad) or not any(map(any, op.attributes.amounts)):
            continue
        held = [float(end) for name in op.constants.values() for end in _ends(graph, name)] or [op.attributes.value]
        name: str | None = op.inputs[0]
        reach = FARTHEST * max(-found[op.inputs[0]].low, found[op.inputs[0]].high)
        if max(held) > reach or min(held) < -reach:
            continue
        border = Range(min(held), max(held))
        while name is not None:
            found[name] = found[name].union(border)
            name = _source(makers.get(name))
        found[op.outputs[0]] = replace(found[op.inputs[0]], means=found[op.outputs[0]].means)
    return found


def _ends(graph: Graph, name: str) -> tuple[float, float]:
    values = graph.constants[name].data
    return float(values.min()), float(values.max())


def _source(op: Op | None) -> str | None:
    """The tensor whose format the operation's result has."""
    return op.inputs[0] if op is not None and has_own_format(op) and same_scale(op.attributes) else None
