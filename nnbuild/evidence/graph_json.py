"""The computed graph as JSON, complete enough for another program to compute it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnbuild.evidence.array_store import Store
from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import Clamp


def described(graph: Graph, store: Store) -> dict[str, Any]:
    used = {name for op in graph.ops for name in op.constants.values()}
    used |= {state.initial for state in graph.states if state.initial is not None}
    return {
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "states": [[state.before, state.after, state.initial] for state in graph.states],
        "tensors": {
            name: {
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "scale": tensor.quant.scale if tensor.quant is not None else None,
                "zero": tensor.quant.zero_point if tensor.quant is not None else 0,
            }
            for name, tensor in graph.tensors.items()
        },
        "constants": {name: _constant(graph, name, store) for name in sorted(used)},
        "ops": [_op(op) for op in graph.ops],
    }


def _constant(graph: Graph, name: str, store: Store) -> dict[str, Any]:
    constant = graph.constants[name]
    quant = constant.quant
    return {
        "data": store.put("c", constant.data),
        "scales": list(quant.scales) if quant is not None else [],
        "zero": quant.zero_point if quant is not None else 0,
    }


def _op(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "kind": op.kind,
        "layer": op.layer,
        "inputs": list(op.inputs),
        "outputs": list(op.outputs),
        "constants": dict(op.constants),
        "outer": list(op.outer),
        "attributes": {name: plain(value) for name, value in vars(op.attributes).items()},
    }


def plain(value: Any) -> Any:
    """A JSON value; values without a JSON form become words."""
    if isinstance(value, Clamp):
        return {"low": value.low, "high": value.high}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
