"""The integer references against TFLite's reference kernels: each operator of the zoo as an operation of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from nnbuild.model.graph import Array, Constant, Op, Quant, Tensor
from nnbuild.numeric.resize import CENTRES, CORNERS, EDGES
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.interpret import compute
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax
from tests.numeric import tflite_graph
from tests.numeric.test_against_tflite import occurrences, tensors

pytestmark = pytest.mark.oracle

CLAMPS = {"none": Clamp(), "relu": Clamp(0.0), "relu6": Clamp(0.0, 6.0), "relu_n1_to_1": Clamp(-1.0, 1.0)}
INF = float("inf")
Operator = tflite_graph.Operator
Maker = Callable[[Operator], Attributes | None]


def _binary(function: str) -> Maker:
    fused = function in ("add", "subtract", "multiply")
    return lambda op: Binary(function, CLAMPS[op.activation] if fused else Clamp())


def _activation(function: str, *parameters: float) -> Maker:
    return lambda op: Activation(function, parameters)


def _leaky(op: Operator) -> Attributes:
    return Activation("leaky_relu", (float(op.options.Alpha()),))


def _reduce(function: str) -> Maker:
    def make(op: Operator) -> Attributes | None:
        source, axes = op.inputs
        assert source is not None and axes is not None
        rank = len(source.shape)
        chosen = sorted(int(a) % rank for a in np.ravel(axes.values))
        if chosen != list(range(chosen[0], chosen[-1] + 1)) or chosen[0] == 0:
            return None
        return Reduce(function, chosen[0] - 1, len(chosen), len(op.outputs[0].shape) == rank)

    return make


def _softmax(op: Operator) -> Attributes | None:
    rank = len(op.outputs[0].shape)
    same = op.outputs[0].dtype == op.inputs[0].dtype  # type: ignore[union-attr]
    return Softmax(rank - 2) if op.options.Beta() == 1.0 and rank > 1 and same else None


def _concatenate(op: Operator) -> Attributes | None:
    axis = int(op.options.Axis()) % len(op.outputs[0].shape)
    return Concatenate(axis - 1) if axis else None


def _bilinear(op: Operator) -> Attributes | None:
    source, out = op.inputs[0], op.outputs[0]
    assert source is not None
    centred, corners = op.options.HalfPixelCenters(), op.options.AlignCorners()
    return ResizeBilinear(out.shape[1:3], CENTRES if centred else CORNERS if corners else EDGES)


MAKERS: dict[str, Maker] = {
    "ADD": _binary("add"), "SUB": _binary("subtract"), "MUL": _binary("multiply"), "MAXIMUM": _binary("maximum"),
    "MINIMUM": _binary("minimum"), "RELU": _activation("clamp", 0.0, INF), "RELU6": _activation("clamp", 0.0, 6.0),
    "RELU_N1_TO_1": _activation("clamp", -1.0, 1.0), "LEAKY_RELU": _leaky, "LOGISTIC": _activation("sigmoid"),
    "TANH": _activation("tanh"), "HARD_SWISH": _activation("hard_swish"), "PRELU": lambda op: PReLU(),
    "MEAN": _reduce("mean"), "REDUCE_MAX": _reduce("max"), "SOFTMAX": _softmax, "CONCATENATION": _concatenate,
    "QUANTIZE": lambda op: Convert(), "DEQUANTIZE": lambda op: Convert(), "RESIZE_BILINEAR": _bilinear,
}  # fmt: skip
CONSTANT_ROLES = {
    "PRELU": ("", "slope"),
    **dict.fromkeys(("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"), ("left", "right")),
}
AXES_ONLY = {"MEAN", "REDUCE_MAX", "RESIZE_BILINEAR"}
LEAST = {
    "int8": {"ADD": 40, "SUB": 30, "MUL": 40, "MAXIMUM": 4, "MINIMUM": 4, "RELU": 8, "RELU6": 6, "RELU_N1_TO_1": 3,
             "LEAKY_RELU": 15, "LOGISTIC": 20, "TANH": 20, "HARD_SWISH": 15, "PRELU": 10, "MEAN": 10, "SOFTMAX": 15,
             "CONCATENATION": 8, "QUANTIZE": 5, "RESIZE_BILINEAR": 1},
    "int16": {"ADD": 30, "SUB": 20, "MUL": 30, "MAXIMUM": 3, "MINIMUM": 3, "RELU": 4, "RELU6": 4, "LEAKY_RELU": 8,
              "LOGISTIC": 20, "TANH": 20, "MEAN": 6, "SOFTMAX": 10, "CONCATENATION": 6, "QUANTIZE": 10},
}  # fmt: skip
"""The least number of operators of each kind, so that no test passes on nothing."""


def tensor(source: tflite_graph.Tensor, axes: int = 1) -> Tensor:
    quant = Quant((source.scale,), source.zero) if source.scales.size else None
    return Tensor(f"t{source.index}", source.shape[axes:], np.dtype(source.dtype).name, quant)


def site_of(op: Operator, attributes: Attributes) -> Site:
    """The operator as in a graph; constants lose a leading axis of one like all tensors."""
    roles = CONSTANT_ROLES.get(op.name, ())
    inputs, constants = [], {}
    for index, source in enumerate(op.inputs):
        assert source is not None
        if source.data is None:
            inputs.append(tensor(source))
        elif op.name not in AXES_ONLY:
            rank = len(op.outputs[0].shape)
            data = source.data.reshape(source.data.shape[1:]) if source.data.ndim == rank else source.data
            constants[roles[index]] = Constant(roles[index], data.copy(), tensor(source).quant)
    outputs = tuple(tensor(out) for out in op.outputs)
    names = tuple(t.name for t in inputs), tuple(t.name for t in outputs)
    return Site(Op("op", attributes, *names, {role: role for role in constants}), tuple(inputs), outputs, constants)


def mismatches(name: str, op: Operator, attributes: Attributes) -> int:
    """The number of outputs that differ from TFLite's, over all samples."""
    known: dict[int, Any] = tensors(name)
    site = site_of(op, attributes)
    indices = [source.index for source in op.inputs if source is not None and source.data is None]
    wanted = known[op.outputs[0].index]
    wrong = 0
    for sample in range(len(wanted)):
        inputs: list[Array] = [known[index][sample] for index in indices]
        (found,) = compute(site, inputs, "float32")
        wrong += int(np.count_nonzero(found.reshape(wanted[sample].shape) != wanted[sample]))
    return wrong


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode in LEAST for kind in LEAST[mode]])
def test_reference_equals_tflite(mode: str, kind: str) -> None:
    made = [(name, op, MAKERS[kind](op)) for name, op in occurrences()[mode, kind]]
    wrong = {name: mismatches(name, op, attributes) for name, op, attributes in made if attributes is not None}
    assert not {name: count for name, count in wrong.items() if count}
    assert sum(attributes is not None for _, _, attributes in made) >= LEAST[mode][kind]
