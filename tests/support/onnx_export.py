"""Writes an imported float network as an exporter for PyTorch would: an ONNX model with channels first."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from nnbuild.model.graph import Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax


def exported(graph: Graph) -> bytes:
    return _Writer(graph).model()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def model(self) -> bytes:
        for op in self.graph.ops:
            self._op(op)
        ends = [[self._port(name) for name in names] for names in (self.graph.inputs, self.graph.outputs)]
        made = helper.make_graph(self.nodes, self.graph.name, *ends, self.constants)
        return bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())

    def _shape(self, name: str) -> Shape:
        shape = self.graph.tensors[name].shape
        return (1, shape[2], *shape[:2]) if len(shape) == 3 else (1, *shape)

    def _port(self, name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, self._shape(name))

    def _held(self, name: str, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values, values.dtype), name))
        return name

    def _add(self, kind: str, inputs: list[str], op: Op, **options: Any) -> None:
        self.nodes.append(helper.make_node(kind, inputs, list(op.outputs), name=op.name, **options))

    def _op(self, op: Op) -> None:
        values = {role: self.graph.constants[name].data for role, name in op.constants.items()}
        inputs = list(op.inputs)
        shape = self.graph.tensors[op.inputs[0]].shape
        match op.attributes:
            case Conv2D(strides=strides, dilation=dilation, padding=padding, groups=groups):
                self._conv(op, values, values["kernel"].transpose(3, 2, 0, 1), strides, dilation, padding, groups)
            case DepthwiseConv2D(strides=strides, dilation=dilation, padding=padding):
                kh, kw, channels, times = values["kernel"].shape
                kernel = values["kernel"].transpose(2, 3, 0, 1).reshape(channels * times, 1, kh, kw)
                self._conv(op, values, kernel, strides, dilation, padding, channels)
            case Affine():
                size = values["scale"].size
                zeros, ones = np.zeros(size, np.float32), np.ones(size, np.float32)
                given = (values["scale"], values["shift"], zeros, ones)
                held = [self._held(f"{op.name}/{i}", v) for i, v in enumerate(given)]
                self._add("BatchNormalization", inputs + held, op, epsilon=0.0)
            case Activation("clamp", (low, high)):
                if (low, high) == (0.0, np.inf):
                    self._add("Relu", inputs, op)
                else:
                    bounds = [self._held(f"{op.name}/{b}", np.float32(b)) for b in (low, high)]
                    self._add("Clip", inputs + bounds, op)
            case Activation("linear"):
                self._add("Identity", inputs, op)
            case Binary(function="add"):
                self._add("Add", inputs, op)
            case Pool2D(function="average", window=window, strides=strides):
                self._add("AveragePool", inputs, op, kernel_shape=window, strides=strides)
            case Reduce(function="mean") if len(shape) == 3:
                self._add("ReduceMean", inputs, op, axes=[2, 3], keepdims=0)
            case Reshape():
                if len(shape) == 3 and np.prod(shape) == max(shape):
                    self._add("Flatten", inputs, op)
                else:
                    self._flattened(op, shape)
            case Dense():
                held = [self._held(name, values[role]) for role, name in op.constants.items()]
                self._add("Gemm", inputs + held, op)
            case Softmax():
                self._add("Softmax", inputs, op, axis=-1)
            case other:
                raise NotImplementedError(other.kind)

    def _conv(self, op: Op, values: Any, kernel: Any, strides: Any, dilation: Any, padding: Any, groups: int) -> None:
        (top, bottom), (left, right) = padding
        inputs = [op.inputs[0], self._held(op.constants["kernel"], kernel)]
        if "bias" in values:
            inputs.append(self._held(op.constants["bias"], values["bias"]))
        pads = [top, left, bottom, right]
        self._add("Conv", inputs, op, strides=strides, dilations=dilation, pads=pads, group=groups)

    def _flattened(self, op: Op, shape: Shape) -> None:
        """Keras flattens channels last, which PyTorch writes as a transpose before."""
        turned = f"{op.name}/turned"
        self.nodes.append(helper.make_node("Transpose", list(op.inputs), [turned], perm=[0, 2, 3, 1]))
        self._add("Flatten", [turned], op)
