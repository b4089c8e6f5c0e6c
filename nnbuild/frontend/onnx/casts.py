"""Casts of quantized integers to the type that they have, as PyTorch writes them behind each QuantizeLinear."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from nnbuild.frontend.onnx.call import SCALED
from nnbuild.frontend.onnx.records import Node
from nnbuild.frontend.onnx.scope import Scope
from nnbuild.frontend.onnx.type_numbers import TYPE_NAMES

KEEPING = SCALED - {"DequantizeLinear", "QLinearConv", "QLinearMatMul"}
"""Operators whose result has the type of their first input."""


def without_casts(nodes: Sequence[Node], scope: Scope, ends: Collection[str]) -> list[Node]:
    """The nodes without such casts; what reads a cast reads its input. The scope keeps the names for inner graphs."""
    types: dict[str, str] = {}
    kept = []
    for given in nodes:
        node = replace(given, inputs=tuple(scope.same.get(name, name) for name in given.inputs))
        node = given if node.inputs == given.inputs else node
        before, after = (*node.inputs, "")[0], node.outputs[0] if node.outputs else ""
        if node.domain == "" and node.kind == "QuantizeLinear":
            types[after] = _type_of(node, scope)
        elif node.domain == "" and node.kind in KEEPING and before in types:
            types[after] = types[before]
        elif node.domain == "" and node.kind == "Cast" and before in types and after not in ends:
            to = node.attributes.get("to")
            if to is not None and TYPE_NAMES.get(to.integer) == types[before]:
                scope.same[after] = before
                continue
        kept.append(node)
    return kept


def _type_of(node: Node, scope: Scope) -> str:
    """The type of a QuantizeLinear's result: its zero point's, or the one it names; bytes without a sign otherwise."""
    named = node.attributes.get("output_dtype")
    if len(node.inputs) < 3 or not node.inputs[2]:
        return TYPE_NAMES.get(named.integer, "uint8") if named is not None else "uint8"
    zero = scope.get(node.inputs[2])
    return zero.dtype.name if isinstance(zero, np.ndarray) and not zero.dtype.metadata else ""
