"""Writes a float model as ONNX, for the peers that read it; from the graph after the passes, so all is folded.

ONNX keeps channels first. Inputs are written in that order; a Transpose stands only where values become a list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from x86_models import Model

from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Graph, Op
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce

OPSET = 17


class Exporter:
    """`ours` maps a tensor of the graph to its name in ONNX; images have their channels first."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.count = 0

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.tensors[name].shape

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def constant(self, values: Any) -> str:
        name = self.fresh()
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = self.fresh()
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def export(self) -> Any:
        source, target = self.graph.inputs[0], self.graph.outputs[0]
        names = {name: name for name in (s.before for s in self.graph.states)} | {source: "x"}
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.first(self.shape(source)))]
        for state in self.graph.states:
            shape = [1, 1, *self.shape(state.before)]
            given.append(helper.make_tensor_value_info(state.before, TensorProto.FLOAT, shape))
        for op in self.graph.ops:
            self.op(op, names)
        self.nodes.append(helper.make_node("Identity", [names[target]], ["y"]))
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.first(self.shape(target)))]
        graph = helper.make_graph(self.nodes, "model", given, made, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    @staticmethod
    def first(shape: tuple[int, ...]) -> list[int]:
        return [1, shape[2], shape[0], shape[1]] if len(shape) == 3 else [1, *shape]

    def op(self, op: Op, names: dict[str, str]) -> None:
        inputs = [names[name] for name in op.inputs]
        constants = {role: self.graph.constants[name].data for role, name in op.constants.items()}
        if isinstance(op.attributes, LSTM):
            result = self.lstm(op.attributes, inputs, constants)
        else:
            result = getattr(self, op.kind)(op, inputs, constants)
            clamp = getattr(op.attributes, "clamp", None)
            if clamp is not None and clamp.low == 0.0 and clamp.high is None:
                result = self.node("Relu", [result])
            elif clamp is not None and (clamp.low is not None or clamp.high is not None):
                bounds = ["" if v is None else self.constant(np.float32(v)) for v in (clamp.low, clamp.high)]
                result = self.node("Clip", [result, *bounds])
        names[op.outputs[0]] = result

    def conv2d(self, op: Op, inputs: list[str], constants: Any) -> str:
        attributes = op.attributes
        assert isinstance(attributes, Conv2D | DepthwiseConv2D)
        kernel = constants["kernel"].transpose(3, 2, 0, 1)
        groups = attributes.groups if isinstance(attributes, Conv2D) else kernel.shape[1]
        if isinstance(attributes, DepthwiseConv2D):
            kernel = constants["kernel"].transpose(2, 3, 0, 1).reshape(-1, 1, *constants["kernel"].shape[:2])
        (top, bottom), (left, right) = attributes.padding
        given = [*inputs, self.constant(kernel), *([self.constant(constants["bias"])] if "bias" in constants else [])]
        options = {"strides": attributes.strides, "dilations": attributes.dilation, "group": groups}
        return self.node("Conv", given, pads=[top, left, bottom, right], **options)

    depthwise_conv2d = conv2d

    def dense(self, op: Op, inputs: list[str], constants: Any) -> str:
        given = [*inputs, self.constant(constants["kernel"])]
        return self.node("Gemm", [*given, *([self.constant(constants["bias"])] if "bias" in constants else [])])

    def pool2d(self, op: Op, inputs: list[str], constants: Any) -> str:
        pool = op.attributes
        assert isinstance(pool, Pool2D)
        (top, bottom), (left, right) = pool.padding
        kind = "MaxPool" if pool.function == "max" else "AveragePool"
        return self.node(kind, inputs, kernel_shape=pool.window, strides=pool.strides, pads=[top, left, bottom, right])

    def pad(self, op: Op, inputs: list[str], constants: Any) -> str:
        """Of an image, whose channels come first here."""
        assert isinstance(op.attributes, Pad) and len(op.attributes.amounts) == 3
        rows, columns, channels = op.attributes.amounts
        sides = np.array([(0, 0), channels, rows, columns], np.int64).T.reshape(-1)
        return self.node("Pad", [*inputs, self.constant(sides), self.constant(np.float32(op.attributes.value))])

    def reduce(self, op: Op, inputs: list[str], constants: Any) -> str:
        assert isinstance(op.attributes, Reduce) and op.attributes.axis == 0
        mean = self.node("GlobalAveragePool", inputs)
        return self.node("Reshape", [mean, self.constant(np.array(self.first(self.shape(op.outputs[0]))))])

    def reshape(self, op: Op, inputs: list[str], constants: Any) -> str:
        shape = self.shape(op.inputs[0])
        if len(shape) == 3 and shape[:2] != (1, 1):
            inputs = [self.node("Transpose", inputs, perm=[0, 2, 3, 1])]
        return self.node("Reshape", [*inputs, self.constant(np.array(self.first(self.shape(op.outputs[0]))))])

    def softmax(self, op: Op, inputs: list[str], constants: Any) -> str:
        return self.node("Softmax", inputs, axis=1)

    def binary(self, op: Op, inputs: list[str], constants: Any) -> str:
        return self.node("Add", inputs)

    def lstm(self, attributes: LSTM, inputs: list[str], constants: Any) -> str:
        """ONNX orders the gates input, output, forget, cell; its second bias is the state's."""

        def ordered(matrix: Any) -> Any:
            let_in, forget, cell, let_out = np.split(matrix, 4, axis=-1)
            return np.concatenate([let_in, let_out, forget, cell], axis=-1).T[None]

        bias = np.concatenate(
            [ordered(constants["bias"][None])[0].T, np.zeros((1, 4 * attributes.units), np.float32)], 1
        )
        weights = [self.constant(ordered(constants[role])) for role in ("kernel", "recurrent")]
        names = [self.fresh() for _ in range(3)]
        given = [inputs[0], *weights, self.constant(bias.astype(np.float32)), "", *inputs[1:]]
        self.nodes.append(helper.make_node("LSTM", given, names, hidden_size=attributes.units))
        return self.node("Reshape", [names[1], self.constant(np.array([1, attributes.units]))])


def export(model: Model, path: Path) -> None:
    graph = compile_model(Options(model.path)).graph
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(Exporter(graph).export(), str(path))
