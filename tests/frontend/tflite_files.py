"""Writes `.tflite` files from plain records, with the flatbuffer builder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import flatbuffers
import numpy as np
import tflite

KINDS = {name: value for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
TYPES = {name.lower(): value for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}
TYPES |= {"int2": 19, "uint4": 20}
YOUNGER = {name: value for name, value in vars(tflite.BuiltinOptions2).items() if isinstance(value, int) and value}
OPTIONS = {name: value for name, value in vars(tflite.BuiltinOptions).items() if isinstance(value, int)}


@dataclass(frozen=True)
class T:
    """A tensor; `data` makes it a constant."""

    name: str
    shape: Sequence[int]
    dtype: str = "int8"
    scales: Sequence[float] = (0.1,)
    zeros: Sequence[int] = (0,)
    axis: int = 0
    data: Any = None
    variable: bool = False
    buffer: int | None = None
    signature: Sequence[int] = ()
    blocks: tuple[int, int] | None = None
    """The tensor of its blocks' scales, and how many neighbours a block has."""
    sparse: tuple[Sequence[int], Sequence[int], Sequence[Any]] | None = None
    """The order of its axes, those of its blocks, and of each a size, or the segments and indices."""


@dataclass(frozen=True)
class O:  # noqa: E742
    """An operator; tensors by their place, -1 for none."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = "NONE"
    values: Mapping[str, Any] = field(default_factory=dict)
    intermediates: Sequence[int] = ()
    custom: str = ""
    custom_options: bytes = b""
    code: int | None = None
    version: int = 1
    younger: bool = False
    """Whether its code is in the younger field alone, as ai-edge-quantizer writes it."""


@dataclass(frozen=True)
class File:
    tensors: Sequence[T]
    operators: Sequence[O]
    inputs: Sequence[int]
    outputs: Sequence[int]
    others: Sequence[File] = ()
    """Further subgraphs."""

    def with_tensor(self, index: int, **changes: Any) -> File:
        tensors = list(self.tensors)
        tensors[index] = replace(tensors[index], **changes)
        return replace(self, tensors=tensors)

    def with_operator(self, index: int, **changes: Any) -> File:
        operators = list(self.operators)
        operators[index] = replace(operators[index], **changes)
        return replace(self, operators=operators)


def to_bytes(file: File) -> bytes:
    b = flatbuffers.Builder(1024)
    parts = (file, *file.others)
    buffers = [_buffer(b, None)] + [_buffer(b, t.data) for part in parts for t in part.tensors]
    codes = [_code(b, o) for part in parts for o in part.operators]
    made, buffer, code = [], 1, 0
    for part in parts:
        made.append(_subgraph(b, part, buffer, code))
        buffer, code = buffer + len(part.tensors), code + len(part.operators)
    graphs = _tables(b, made)
    code_list, buffer_list = _tables(b, codes), _tables(b, buffers)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, code_list)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, buffer_list)
    b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def _subgraph(b: Any, file: File, buffer: int, code: int) -> int:
    tensors = [_tensor(b, t, i + buffer) for i, t in enumerate(file.tensors)]
    operators = [_operator(b, o, i + code) for i, o in enumerate(file.operators)]
    tensor_list, operator_list = _tables(b, tensors), _tables(b, operators)
    inputs, outputs = _numbers(b, file.inputs, np.int32), _numbers(b, file.outputs, np.int32)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensor_list)
    tflite.SubGraphAddInputs(b, inputs)
    tflite.SubGraphAddOutputs(b, outputs)
    tflite.SubGraphAddOperators(b, operator_list)
    return int(tflite.SubGraphEnd(b))


def _numbers(b: Any, values: Sequence[Any], dtype: Any) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, dtype)))


def _tables(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _buffer(b: Any, data: Any) -> int:
    vector = None if data is None else _numbers(b, np.frombuffer(np.asarray(data).tobytes(), np.uint8), np.uint8)
    tflite.BufferStart(b)
    if vector is not None:
        tflite.BufferAddData(b, vector)
    return int(tflite.BufferEnd(b))


def _tensor(b: Any, t: T, buffer: int) -> int:
    name, shape = b.CreateString(t.name), _numbers(b, t.shape, np.int32)
    signature = _numbers(b, t.signature, np.int32) if t.signature else None
    quantization = None
    if t.dtype not in ("float32", "resource") and len(t.scales):
        scales, zeros = _numbers(b, t.scales, np.float32), _numbers(b, t.zeros, np.int64)
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scales)
        tflite.QuantizationParametersAddZeroPoint(b, zeros)
        tflite.QuantizationParametersAddQuantizedDimension(b, t.axis)
        quantization = tflite.QuantizationParametersEnd(b)
    if t.blocks is not None:
        quantization = _blocks(b, *t.blocks)
    sparsity = None if t.sparse is None else _sparsity(b, *t.sparse)
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, TYPES[t.dtype])
    tflite.TensorAddBuffer(b, buffer if t.buffer is None else t.buffer)
    tflite.TensorAddName(b, name)
    tflite.TensorAddIsVariable(b, t.variable)
    if quantization is not None:
        tflite.TensorAddQuantization(b, quantization)
    if sparsity is not None:
        tflite.TensorAddSparsity(b, sparsity)
    if signature is not None:
        tflite.TensorAddShapeSignature(b, signature)
    return int(tflite.TensorEnd(b))


def _sparsity(b: Any, order: Sequence[int], blocks: Sequence[int], levels: Sequence[Any]) -> int:
    made = []
    for level in levels:
        lists = [] if isinstance(level, int) else [_bytes(b, each) for each in level]
        tflite.DimensionMetadataStart(b)
        tflite.DimensionMetadataAddFormat(b, int(bool(lists)))
        if lists:
            tflite.DimensionMetadataAddArraySegmentsType(b, 3)
            tflite.DimensionMetadataAddArraySegments(b, lists[0])
            tflite.DimensionMetadataAddArrayIndicesType(b, 3)
            tflite.DimensionMetadataAddArrayIndices(b, lists[1])
        else:
            tflite.DimensionMetadataAddDenseSize(b, level)
        made.append(int(tflite.DimensionMetadataEnd(b)))
    axes, block_map, tables = _numbers(b, order, np.int32), _numbers(b, blocks, np.int32), _tables(b, made)
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, axes)
    tflite.SparsityParametersAddBlockMap(b, block_map)
    tflite.SparsityParametersAddDimMetadata(b, tables)
    return int(tflite.SparsityParametersEnd(b))


def _bytes(b: Any, values: Sequence[int]) -> int:
    numbers = _numbers(b, values, np.uint8)
    tflite.Uint8VectorStart(b)
    tflite.Uint8VectorAddValues(b, numbers)
    return int(tflite.Uint8VectorEnd(b))


def _blocks(b: Any, scales: int, size: int) -> int:
    """The schema's package does not know this table yet."""
    b.StartObject(4)
    for slot, value in enumerate((scales, -1, size)):
        b.PrependInt32Slot(slot, value, 0)
    details = b.EndObject()
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddDetailsType(b, 2)
    tflite.QuantizationParametersAddDetails(b, details)
    return int(tflite.QuantizationParametersEnd(b))


def _code(b: Any, o: O) -> int:
    custom = b.CreateString(o.custom) if o.custom else None
    number = KINDS[o.kind] if o.code is None else o.code
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, 0 if o.younger else min(number, 127))
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, o.version)
    return int(tflite.OperatorCodeEnd(b))


def _operator(b: Any, o: O, code: int) -> int:
    inputs, outputs = _numbers(b, o.inputs, np.int32), _numbers(b, o.outputs, np.int32)
    inside = _numbers(b, o.intermediates, np.int32)
    options, custom = None, _numbers(b, np.frombuffer(o.custom_options, np.uint8), np.uint8)
    if o.options != "NONE":
        lists = {name: _numbers(b, v, v.dtype) for name, v in o.values.items() if isinstance(v, np.ndarray)}
        lists |= {name: int(b.CreateString(v)) for name, v in o.values.items() if isinstance(v, str)}
        getattr(tflite, f"{o.options}Start")(b)
        for name, value in {**o.values, **lists}.items():
            getattr(tflite, f"{o.options}Add{name}")(b, value)
        options = getattr(tflite, f"{o.options}End")(b)
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    tflite.OperatorAddIntermediates(b, inside)
    tflite.OperatorAddCustomOptions(b, custom)
    if options is not None and o.options in YOUNGER:
        tflite.OperatorAddBuiltinOptions2Type(b, YOUNGER[o.options])
        tflite.OperatorAddBuiltinOptions2(b, options)
    elif options is not None:
        tflite.OperatorAddBuiltinOptionsType(b, OPTIONS[o.options])
        tflite.OperatorAddBuiltinOptions(b, options)
    return int(tflite.OperatorEnd(b))
