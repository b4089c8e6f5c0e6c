"""Room for the ends of 16-bit tables: the entries around the samples, which have one on every 128th input, may exceed
their results. If they did not fit the results' format, what is interpolated towards them would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Graph, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.activation_rules import Table, rule_of
from nnbuild.ops.functions import apply
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.formats import activation_format, fixed_format

APART = 128
"""Inputs between two entries."""
MOST_ROOM = 1 / 8
"""Of the largest result. What exceeds it by more lies at a pole, for which no format has room."""


def with_table_ends(graph: Graph, ranges: Ranges, forms: Mapping[str, str]) -> Ranges:
    """The ranges, wider by the outermost entries of tables."""
    found = dict(ranges)
    for op in graph.ops:
        if forms[op.name] == "int16" and isinstance(op.attributes, Activation):
            found[op.outputs[0]] = _with_ends(op.attributes, found[op.inputs[0]], found[op.outputs[0]])
    return found


def _with_ends(function: Activation, given: Range, results: Range) -> Range:
    source = activation_format(given, "int16")
    x, y = Tensor("x", (1,), "int16", source), Tensor("y", (1,), "int16", activation_format(results, "int16"))
    if fixed_format(function, "int16") or not isinstance(rule_of(function.function, function.parameters, x, y), Table):
        return results
    step = APART * source.scale
    around = np.array([np.floor(given.low / step), np.ceil(given.high / step)]) * step
    with np.errstate(all="ignore"):
        entries = apply(function.function, function.parameters, around)
    room = (1 + MOST_ROOM) * max(-results.low, results.high)
    fitting = [float(entry) for entry in entries if abs(entry) <= room]
    return replace(results, low=min(results.low, *fitting), high=max(results.high, *fitting)) if fitting else results
