"""Functions that change too fast for a table of 513 entries over the range of their inputs: a sine over thousands."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nnbuild.model.graph import Graph, Op, Tensor
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.activation import Activation
from nnbuild.ops.activation_rules import Table, rule_of
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.functions import apply
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.formats import activation_format, fixed_format

BLURRED = 1 / 512
"""The largest error of a table, as a share of the range of its results."""
APART = 7
"""Inputs between two that are tried."""


def with_producers(graph: Graph, steep: Collection[str]) -> set[str]:
    """The operations, and those elementwise ones before them that nothing else reads: 16 bits would lose the epsilon
    that is added before a logarithm."""
    draft, found = GraphEditor(graph), set(steep)
    for op in reversed(graph.ops):
        readers = draft.readers(op.outputs[0])
        alone = op.outputs[0] not in draft.pinned and readers and all(reader.name in found for reader in readers)
        if alone and isinstance(op.attributes, Activation | Affine | Binary):
            found.add(op.name)
    return found


def is_steep(op: Op, given: Range, found: Range) -> bool:
    """Whether 16-bit integers compute the operation too coarsely; `given` and `found` are its ranges."""
    if not isinstance(op.attributes, Activation):
        return False
    function, parameters = op.attributes.function, op.attributes.parameters
    made = fixed_format(op.attributes, "int16") or activation_format(found, "int16")
    ends = [Tensor("x", (1,), "int16", activation_format(given, "int16")), Tensor("y", (1,), "int16", made)]
    steps = [tensor.quant.scale for tensor in ends if tensor.quant is not None]
    rule = rule_of(function, parameters, *ends)
    if not isinstance(rule, Table):
        return False
    inputs = np.arange(INT16[0], INT16[1] + 1, APART)
    inputs = inputs[(inputs * steps[0] >= given.low) & (inputs * steps[0] <= given.high)]
    if not len(inputs):
        return False
    with np.errstate(all="ignore"):
        exact = apply(function, parameters, inputs * steps[0])
    errors = np.abs(rule.apply(inputs) * steps[1] - np.clip(exact, found.low, found.high))
    return bool(np.nanmax(errors) > BLURRED * (found.high - found.low))
