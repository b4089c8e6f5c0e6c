"""A `.tflite` file as plain records: tensors, operators and constants, each checked separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import ModelError, ToolMissing
from nnbuild.frontend.assembly import SMALLER
from nnbuild.frontend.builder import MAX_ELEMENTS
from nnbuild.frontend.tflite.sparsity import expanded, levels_of
from nnbuild.frontend.tflite.verifier import Damaged, check
from nnbuild.model.graph import Array, Shape

DAMAGED = "The file is damaged; convert the model again."
CONVERT_AGAIN = "Convert the model again, or give the original .h5 or .keras file."

MAX_AXES = 8
WITHOUT_OUTPUTS = ("CALL_ONCE", "ASSIGN_VARIABLE")
"""Operators that are used for their effects."""
SPARE = bytes(16)
"""Padding after the file's bytes, so that reading a number at the very end stays inside."""


@dataclass(frozen=True)
class Quantization:
    """A tensor's quantization in the file; `axis` applies only with several scales.

    A constant in blocks has one scale per block of neighbours along its last axis, in `blocks`, and none in `scales`.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    blocks: Array | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Tensor:
    """`dtype` is a numpy name, or TFLite's own for an unsupported type. `data` is a constant's bytes.

    `open` lists the axes that the converter left open; `shape` has 1 for each of them.
    """

    index: int
    name: str
    shape: Shape
    dtype: str
    quantization: Quantization | None = None
    data: Array | None = None
    is_sparse: bool = False
    open: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        return f"tensor {self.name!r}"

    def error(self, cause: str, next_step: str = DAMAGED) -> ModelError:
        return ModelError(self.where, cause, next_step)

    def values(self) -> Array:
        """A constant's values in its own type and shape."""
        if self.data is None:
            raise self.error("its values are needed at compile time, but are computed at run time.")
        if self.is_sparse:
            raise self.error("it is stored sparse, which nnbuild does not read.", "Convert the model without sparsity.")
        if self.dtype not in NUMBERS.values():
            raise self.error(f"its type is {self.dtype}, which nnbuild does not read.", CONVERT_AGAIN)
        if len(self.data) != prod(self.shape) * np.dtype(self.dtype).itemsize:
            raise self.error(
                f"it holds {len(self.data)} bytes, which is not the size of {self.dtype} {list(self.shape)}."
            )
        values: Array = np.frombuffer(self.data.tobytes(), np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)
        return values


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator of the file. Absent optional inputs are None."""

    index: int
    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options_kind: str = "NONE"
    options: Any = None
    intermediates: tuple[Tensor, ...] = ()
    custom: bytes = b""
    unsigned: bool = False
    """Whether the file has its 8-bit integers from 0 to 255."""

    @property
    def where(self) -> str:
        """Its index, its kind, and its output tensor, by which converters name layers."""
        made = f" for {self.outputs[0].name!r}" if self.outputs else ""
        return f"operator {self.index} ({self.kind}){made}"

    def error(self, cause: str, next_step: str = DAMAGED) -> ModelError:
        return ModelError(self.where, cause, next_step)


@dataclass(frozen=True, eq=False)
class Model:
    """The main subgraph, and by number the subgraphs that it calls once; others are for control flow, which is
    refused."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...] = field(default=())
    once: Mapping[int, Model] = field(default_factory=dict)


def called_once(operator: Operator) -> int | None:
    """The number of the subgraph that a CALL_ONCE calls."""
    if operator.kind != "CALL_ONCE" or operator.options_kind != "CallOnceOptions":
        return None
    return int(operator.options.InitSubgraphIndex()) if operator.options is not None else 0


NUMBERS = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT32": "uint32",
    "BOOL": "bool",
    "UINT8": "uint8",
}


YOUNGER_TYPES = {19: "INT2", 20: "UINT4", 21: "FLOAT8_E4M3FN", 22: "FLOAT8_E5M2"}
"""Types that the schema's package may not know yet."""
NARROW = {"INT4": 4, "INT2": 2}
NO_DETAILS, IN_BLOCKS = 0, 2
"""Kinds of quantization details."""


def opened(path: Path) -> Reader:
    """A file whose offsets are checked before anything is read through them."""
    schema = _schema()
    data = path.read_bytes()
    try:
        check(data)
    except Damaged as error:
        raise ModelError(path.name, f"{error}.", DAMAGED) from None
    return Reader(path.name, schema, data)


def _schema() -> Any:
    """The generated readers of the file format."""
    try:
        import tflite
    except ImportError:
        raise ToolMissing(
            "the package 'tflite'",
            "it is needed to read .tflite files, and is not installed.",
            "pip install nnbuild[tflite]",
        ) from None
    return tflite


class Reader:
    """Creates the records of a file's subgraphs."""

    def __init__(self, file: str, schema: Any, data: bytes) -> None:
        self.file = file
        self.schema = schema
        self.types = {**YOUNGER_TYPES, **_names_of(schema.TensorType)}
        self.kinds = _names_of(schema.BuiltinOperator)
        self.options = _names_of(schema.BuiltinOptions)
        self.younger_options = _names_of(getattr(schema, "BuiltinOptions2", object()))
        self.data = data
        self._parts: dict[int, Model] = {}
        self.root = schema.Model.GetRootAs(data + SPARE, 0)

    def model(self) -> Model:
        if self.root.SubgraphsLength() == 0:
            raise ModelError(self.file, "it contains no network.", DAMAGED)
        main = self._part(0)
        for ends, what in ((main.inputs, "inputs"), (main.outputs, "outputs")):
            if not ends:
                raise ModelError(self.file, f"it has no {what}.", DAMAGED)
        called = {number: op for op in main.operators if (number := called_once(op)) is not None}
        return replace(main, once={number: self.called(operator, number) for number, operator in called.items()})

    def called(self, operator: Operator, number: int) -> Model:
        """The subgraph that an operator names."""
        if not 0 < number < self.root.SubgraphsLength():
            raise operator.error(f"it calls subgraph {number}, which does not exist.")
        if number not in self._parts:
            self._parts[number] = self._part(number)
        return self._parts[number]

    def _part(self, number: int) -> Model:
        graph = self.root.Subgraphs(number)
        tensors, operators = self._inside(graph)
        inputs = self._ends(graph.InputsAsNumpy() if graph.InputsLength() else [], tensors, "inputs")
        outputs = self._ends(graph.OutputsAsNumpy() if graph.OutputsLength() else [], tensors, "outputs")
        return Model(inputs, outputs, operators, tensors)

    def _inside(self, graph: Any) -> tuple[tuple[Tensor, ...], tuple[Operator, ...]]:
        read = [self._tensor(graph.Tensors(i), i) for i in range(graph.TensorsLength())]
        tensors = tuple(self._in_blocks(graph.Tensors(tensor.index), tensor, read) for tensor in read)
        return tensors, tuple(self._operator(graph.Operators(i), i, tensors) for i in range(graph.OperatorsLength()))

    def _ends(self, indices: Any, tensors: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
        found = [int(i) for i in indices]
        if not all(0 <= i < len(tensors) for i in found):
            raise ModelError(self.file, f"its {what} name a tensor that does not exist.", DAMAGED)
        return tuple(tensors[i] for i in found)

    def _tensor(self, raw: Any, index: int) -> Tensor:
        name = _short(_text(raw.Name())) or f"tensor {index}"
        shape = tuple(int(n) for n in raw.ShapeAsNumpy()) if raw.ShapeLength() else ()
        if len(shape) > MAX_AXES or min(shape, default=0) < 0:  # 0 occurs in unused tensors
            raise ModelError(
                f"tensor {name!r}",
                f"its shape is {list(shape[:16])}, which nnbuild does not support.",
                "Convert the model with fixed input shapes of at most 8 axes.",
            )
        if prod(shape) > MAX_ELEMENTS:
            raise ModelError(f"tensor {name!r}", f"its shape {list(shape)} is too large.", SMALLER)
        kind, data = self.types.get(raw.Type(), str(raw.Type())), self._data(name, raw.Buffer())
        sparse = raw.Sparsity()
        if sparse is not None and data is not None and kind in NUMBERS:
            data, sparse = self._expanded(name, sparse, shape, data, NUMBERS[kind]), None
        if kind in NARROW and data is not None:
            kind, data = "INT8", _unpacked(name, data, prod(shape), NARROW[kind])
        return Tensor(
            index,
            name,
            shape,
            NUMBERS.get(kind, kind),
            self._quantization(name, raw.Quantization()),
            data,
            sparse is not None,
            _open_axes(raw, len(shape)),
        )

    def _expanded(self, name: str, sparse: Any, shape: Shape, stored: Array, dtype: str) -> Array:
        try:
            whole = expanded(*levels_of(self.schema, sparse), shape, stored.view(dtype))
        except (ValueError, IndexError):
            raise ModelError(f"tensor {name!r}", "its sparse values do not match its shape.", DAMAGED) from None
        return whole.reshape(-1).view(np.uint8)

    def _quantization(self, name: str, raw: Any) -> Quantization | None:
        if raw is None or raw.ScaleLength() == 0:
            return None
        if raw.DetailsType() != NO_DETAILS:
            raise ModelError(f"tensor {name!r}", "its quantization is of a custom type.", CONVERT_AGAIN)
        scales = tuple(float(s) for s in raw.ScaleAsNumpy())
        zeros = tuple(int(z) for z in raw.ZeroPointAsNumpy()) if raw.ZeroPointLength() else (0,) * len(scales)
        if not all(isfinite(s) and s >= 0 for s in scales):
            bad = next(s for s in scales if not (isfinite(s) and s >= 0))
            raise ModelError(f"tensor {name!r}", f"its scale is {bad:g}.", DAMAGED)
        if len(zeros) not in (1, len(scales)):
            raise ModelError(f"tensor {name!r}", f"it has {len(scales)} scales, but {len(zeros)} zero points.", DAMAGED)
        return Quantization(scales, zeros, int(raw.QuantizedDimension()))

    def _in_blocks(self, raw: Any, tensor: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Adds the scales of blocks, if any, which are a separate tensor."""
        details = raw.Quantization()
        if details is None or details.DetailsType() != IN_BLOCKS or tensor.quantization is not None:
            return tensor
        table = details.Details()
        if table is None or tensor.data is None or tensor.dtype != "int8":
            raise tensor.error("its quantization is of a custom type.", CONVERT_AGAIN)
        place, size = _number(table, 0), _number(table, 2)
        if not 0 <= place < len(tensors) or size < 1 or _number(table, 3, signed=False):
            raise tensor.error("its quantization in blocks has no scales, or blocks of several axes.", CONVERT_AGAIN)
        scales = tensors[place]
        if not tensor.shape or scales.shape != (*tensor.shape[:-1], tensor.shape[-1] / size):
            raise tensor.error(f"its blocks of {size} do not match its shape {list(tensor.shape)}.")
        blocks = np.repeat(as_float(scales), size, axis=-1)
        if not np.isfinite(blocks).all():
            raise tensor.error("a scale of its blocks is not finite.")
        return replace(tensor, quantization=Quantization((), (), len(tensor.shape) - 1, blocks))

    def _data(self, name: str, buffer: int) -> Array | None:
        """A constant's bytes, which large files store after the tables."""
        if buffer >= self.root.BuffersLength():
            raise ModelError(f"tensor {name!r}", "its buffer does not exist.", DAMAGED)
        raw = self.root.Buffers(buffer)
        begin, size = int(raw.Offset()), int(raw.Size())
        if begin > 1:
            if begin + size > len(self.data):
                raise ModelError(f"tensor {name!r}", "its values lie outside the file.", DAMAGED)
            return np.frombuffer(self.data, np.uint8, size, begin)
        return raw.DataAsNumpy() if raw.DataLength() else None

    def _operator(self, raw: Any, index: int, tensors: tuple[Tensor, ...]) -> Operator:
        kind = self._kind(raw, index)
        where = f"operator {index} ({kind})"
        inputs = self._chosen(where, raw.InputsAsNumpy() if raw.InputsLength() else [], tensors)
        outputs = self._chosen(where, raw.OutputsAsNumpy() if raw.OutputsLength() else [], tensors)
        inside = self._chosen(where, raw.IntermediatesAsNumpy() if raw.IntermediatesLength() else [], tensors)
        if (not outputs and kind not in WITHOUT_OUTPUTS) or any(tensor is None for tensor in outputs + inside):
            raise ModelError(where, "some of its outputs are missing.", DAMAGED)
        options_kind, options = self._options(raw)
        made = tuple(tensor for tensor in outputs if tensor is not None)
        within = tuple(tensor for tensor in inside if tensor is not None)
        custom = raw.CustomOptionsAsNumpy().tobytes() if raw.CustomOptionsLength() else b""
        return Operator(index, kind, inputs, made, options_kind, options, within, custom)

    def _options(self, raw: Any) -> tuple[str, Any]:
        """The options from either of the schema's two unions: the first ran out of numbers."""
        kind, table = self.options.get(raw.BuiltinOptionsType(), "NONE"), raw.BuiltinOptions()
        if kind == "NONE" and self.younger_options:
            kind, table = self.younger_options.get(raw.BuiltinOptions2Type(), "NONE"), raw.BuiltinOptions2()
        if kind == "NONE" or table is None:
            return kind, None
        options = vars(self.schema)[kind]()
        options.Init(table.Bytes, table.Pos)
        return kind, options

    def _kind(self, raw: Any, index: int) -> str:
        if raw.OpcodeIndex() >= self.root.OperatorCodesLength():
            raise ModelError(f"operator {index}", "its operator code is not in the file.", DAMAGED)
        code = self.root.OperatorCodes(raw.OpcodeIndex())
        number = max(_number(code._tab, 3), code.DeprecatedBuiltinCode())  # files before 2020 have only the second
        kind = self.kinds.get(number, str(number))
        return f"CUSTOM {_text(code.CustomCode())}" if kind == "CUSTOM" else kind

    def _chosen(self, where: str, indices: Any, tensors: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
        """-1 stands for an absent input."""
        found = [int(i) for i in indices]
        if not all(-1 <= i < len(tensors) for i in found):
            raise ModelError(where, "it names a tensor that does not exist.", DAMAGED)
        return tuple(tensors[i] if i >= 0 else None for i in found)


def _number(table: Any, slot: int, signed: bool = True) -> int:
    """A 32-bit field or offset from the file; the schema's package returns another field for some."""
    offset = table.Offset(4 + 2 * slot)
    if not offset:
        return 0
    return int.from_bytes(table.Bytes[table.Pos + offset :][:4], "little", signed=signed)


def _unpacked(name: str, data: Array, count: int, bits: int) -> Array:
    """Unpacks numbers of 4 or 2 bits, the first in the lowest bits of a byte."""
    parts = 8 // bits
    if len(data) != -(-count // parts):
        raise ModelError(
            f"tensor {name!r}", f"it holds {len(data)} bytes, not {count} numbers of {bits} bits.", DAMAGED
        )
    each = np.stack([data >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)], axis=1).reshape(-1)[:count]
    signed = each.astype(np.int8)
    return np.where(signed >> (bits - 1), signed - (1 << bits), signed).astype(np.int8).view(np.uint8)


def _open_axes(raw: Any, rank: int) -> tuple[int, ...]:
    """Only converters since 2020 mark open axes."""
    if raw.ShapeSignatureLength() != rank:
        return ()
    return tuple(i for i, n in enumerate(raw.ShapeSignatureAsNumpy()) if n < 0) if rank else ()


def _names_of(enumeration: Any) -> Mapping[int, str]:
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}


def _short(name: str) -> str:
    """Converters join the names of all fused layers; the first one is that of the last layer."""
    return name.partition(";")[0][:100]


def _text(raw: bytes | None) -> str:
    """A name for errors."""
    text = (raw or b"")[:200].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)


def as_float(stored: Tensor) -> Array:
    """A constant of any type as float32."""
    values = stored.values()
    if stored.dtype in ("float32", "float16"):
        return values.astype(np.float32)
    known = stored.quantization
    if stored.dtype not in ("int8", "uint8") or known is None:
        raise stored.error(f"it is of type {stored.dtype}, but a quantized type is needed.")
    if known.blocks is not None:
        return np.asarray(values.astype(np.float32) * known.blocks)
    scales, zeros = along(stored, values.ndim, values.shape)
    return np.asarray((values.astype(np.int32) - zeros).astype(np.float32) * scales)


LARGEST = np.finfo(np.float32).max


def finite(stored: Tensor, bounds: bool) -> Array:
    """A constant as float32 without infinities; in `bounds` and masks they become the largest numbers."""
    values = as_float(stored).clip(-LARGEST, LARGEST) if bounds else as_float(stored)
    if not np.isfinite(values).all():
        raise stored.error(
            "it holds values that are not numbers (NaN or infinity).",
            "The training has diverged; train again, or convert an earlier state of the model.",
        )
    return values


def along(stored: Tensor, rank: int, shape: Shape) -> tuple[Array, Array]:
    """A tensor's scales and zero points, in a shape that broadcasts along its axis."""
    known = stored.quantization
    assert known is not None
    if any(abs(zero) >= 1 << 31 for zero in known.zero_points):
        raise stored.error("it has a zero point of more than 32 bits.")
    scales, zeros = np.asarray(known.scales, np.float32), np.asarray(known.zero_points, np.int32)
    if len(scales) > 1:
        if not (0 <= known.axis < rank and shape[known.axis] == len(scales)):
            raise stored.error(f"its {len(scales)} scales do not match its shape {list(shape)}.")
        place = [1] * rank
        place[known.axis] = -1
        scales, zeros = scales.reshape(place), (zeros.reshape(place) if len(zeros) > 1 else zeros)
    return scales, zeros
