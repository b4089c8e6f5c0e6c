"""Recognizes functions that files write as several operations: x * sigmoid(x) is swish.

A function is known by its values, whatever the order and the constants by which a file has them computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.functions import apply
from nnbuild.passes.chains import chains, in_order, on_elements, replace_chain
from nnbuild.passes.graph_editor import GraphEditor

NAMES = ("swish", "gelu", "gelu_tanh", "hard_swish", "mish", "softplus", "softsign", "sigmoid", "tanh", "hard_sigmoid")
POINTS = np.concatenate([np.linspace(-12, 12, 1201), [-80.0, -40.0, -20.0, 20.0, 40.0, 80.0]])[:, None]
"""Samples of one element each."""
CLOSE = np.where(np.abs(POINTS) < 20, 1e-6, 9e-8)
"""Relative difference of values up to which two functions are one: a file's constants have single precision. Where
functions end in a constant, that is one rounding: a sigmoid within 1e-7 and 1 - 1e-7 differs, as a logarithm shows."""
SMALL = np.where(np.abs(POINTS) < 20, 6e-8, 1e-12)
"""Difference of any value: one rounding of 1 where a line begins or ends, as that of a hard sigmoid with a sixth in
single precision; and what remains where a file subtracts two that are nearly equal."""


def name_functions(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        last = draft.ops.get(name)
        if last is None or not _joins(draft, last):
            continue
        for source, chain in chains(draft, last, partial(_joins, draft)):
            function = _name(draft, source, chain) if len(chain) > 1 else None
            if function is not None:
                named = replace(last, attributes=Activation(function), inputs=(source,), constants={})
                replace_chain(draft, chain, named)
                break
    return draft.finish()


def _joins(draft: GraphEditor, op: Op) -> bool:
    if not isinstance(op.attributes, Activation | Binary) or not on_elements(draft, op):
        return False
    tensors = [draft.tensors[name] for name in (*op.inputs, *op.outputs)]
    return all(tensor.dtype == "float32" and tensor.quant is None for tensor in tensors)


def _name(draft: GraphEditor, source: str, chain: Sequence[Op]) -> str | None:
    values: dict[str, Array] = {source: POINTS}
    with np.errstate(all="ignore"):
        for op in in_order(chain, source):
            held = {role: draft.constants[name].data.reshape(-1)[:1] for role, name in op.constants.items()}
            (values[op.outputs[0]],) = op.attributes.reference([values[name] for name in op.inputs], held)
        found = values[chain[-1].outputs[0]]
        for function in NAMES:
            wanted = apply(function, (), POINTS)
            if np.all(np.abs(found - wanted) <= CLOSE * np.abs(wanted) + SMALL):
                return function
    return None
