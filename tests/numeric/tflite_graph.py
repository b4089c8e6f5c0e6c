"""A small reader of `.tflite` files for tests: tensors with their quantization, operators with their options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from nnbuild.numeric.rounding import Ints

DTYPES = {
    tflite.TensorType.FLOAT32: np.float32,
    tflite.TensorType.INT32: np.int32,
    tflite.TensorType.INT64: np.int64,
    tflite.TensorType.INT8: np.int8,
    tflite.TensorType.INT16: np.int16,
    tflite.TensorType.BOOL: np.bool_,
}
OPERATORS = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
OPTIONS = {value: name for name, value in vars(tflite.BuiltinOptions).items() if isinstance(value, int)}
ACTIVATIONS = {0: "none", 1: "relu", 2: "relu_n1_to_1", 3: "relu6"}


@dataclass(frozen=True)
class Tensor:
    index: int
    dtype: Any
    shape: tuple[int, ...]
    scales: NDArray[np.float32]
    zeros: Ints
    data: NDArray[Any] | None

    @property
    def scale(self) -> float:
        return float(self.scales[0])

    @property
    def zero(self) -> int:
        return int(self.zeros[0]) if self.zeros.size else 0

    @property
    def limits(self) -> tuple[int, int]:
        return int(np.iinfo(self.dtype).min), int(np.iinfo(self.dtype).max)

    @property
    def bits(self) -> int:
        return int(np.dtype(self.dtype).itemsize) * 8

    @cached_property
    def values(self) -> Ints:
        assert self.data is not None
        return self.data.astype(np.int64)


@dataclass(frozen=True)
class Operator:
    name: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: Any
    intermediates: list[Tensor]

    @property
    def activation(self) -> str:
        return ACTIVATIONS[int(self.options.FusedActivationFunction())]


def read(data: bytes) -> list[Operator]:
    """The operators of the main subgraph, in order."""
    model = tflite.Model.GetRootAs(data, 0)
    graph = model.Subgraphs(0)
    tensors = [_tensor(model, graph.Tensors(i), i) for i in range(graph.TensorsLength())]
    return [_operator(model, graph.Operators(i), tensors) for i in range(graph.OperatorsLength())]


def _tensor(model: Any, tensor: Any, index: int) -> Tensor:
    dtype = DTYPES[tensor.Type()]
    shape = tuple(int(d) for d in tensor.ShapeAsNumpy()) if tensor.ShapeLength() else ()
    quantization = tensor.Quantization()
    scales, zeros = np.zeros(0, np.float32), np.zeros(0, np.int64)
    if quantization is not None and quantization.ScaleLength():
        scales = np.asarray(quantization.ScaleAsNumpy())
        zeros = np.asarray(quantization.ZeroPointAsNumpy(), np.int64)
    buffer = model.Buffers(tensor.Buffer())
    data = None
    if buffer.DataLength():
        data = np.frombuffer(np.asarray(buffer.DataAsNumpy()).tobytes(), dtype).reshape(shape)
    return Tensor(index, dtype, shape, scales, zeros, data)


def _operator(model: Any, operator: Any, tensors: list[Tensor]) -> Operator:
    code = model.OperatorCodes(operator.OpcodeIndex())
    name = OPERATORS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
    options = None
    if operator.BuiltinOptionsType():
        options = getattr(tflite, OPTIONS[operator.BuiltinOptionsType()])()
        options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
    inside = operator.IntermediatesAsNumpy() if operator.IntermediatesLength() else []
    return Operator(
        name,
        [tensors[i] if i >= 0 else None for i in operator.InputsAsNumpy()],
        [tensors[i] for i in operator.OutputsAsNumpy()],
        options,
        [tensors[i] for i in inside],
    )
