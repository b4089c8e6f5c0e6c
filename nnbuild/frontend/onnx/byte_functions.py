"""Functions of one byte become tables of their results, rounded as ONNX rounds them.

The rules of `ops.activation_rules` are TFLite's, which often rounds twice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op
from nnbuild.numeric.edge import dequantize
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.lookup import between_conversions
from nnbuild.ops.site import site_of


def byte_functions(graph: Graph) -> Graph:
    return replace(graph, ops=tuple(_looked_up(graph, op) for op in graph.ops))


def _looked_up(graph: Graph, op: Op) -> Op:
    site = site_of(graph, op)
    if not isinstance(op.attributes, Activation | Binary) or len(site.inputs) > 1 or site.dtypes != {"int8"}:
        return op
    x, out = site.inputs[0], site.outputs[0]
    single = all(constant.data.size == 1 for constant in site.constants.values())
    if x.is_whole or out.is_whole or x.quant is None or out.quant is None or not single:
        return op
    if isinstance(op.attributes, Activation) and op.attributes.function == "clamp" and x.quant == out.quant:
        return op  # exact, and faster
    held = {role: _real(constant) for role, constant in site.constants.items()}
    return replace(op, attributes=between_conversions(op.attributes, x.quant, out.quant, held), constants={})


def _real(constant: Constant) -> Array:
    if constant.quant is None:
        return constant.data.astype(np.float32)
    return dequantize(constant.data, constant.quant.scale, constant.quant.zero_point)
