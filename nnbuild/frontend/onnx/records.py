"""An `.onnx` file as plain records: graph, nodes and constants, each checked separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.frontend.assembly import SMALLER
from nnbuild.frontend.builder import MAX_ELEMENTS
from nnbuild.frontend.onnx.external_weights import read_external
from nnbuild.frontend.onnx.protobuf import Damaged, Message
from nnbuild.model.graph import Array, Shape

DAMAGED = "The file is damaged; export the model again."
EXPORT_AGAIN = "Export the model again, or simplify it with another tool first."
MAX_AXES = 8
MAX_NODES = 50_000

TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    21: "uint4",
    22: "int4",
}
"""ONNX type numbers; other types are shown as their number."""
LISTED = {"float32": 4, "float64": 10, "int64": 7, "uint32": 11, "uint64": 11}
"""The tensor field with the values where they are not raw; field 5 for all other types."""
HALVES = {"bits": 4}
"""The entry for int8 types that store 4-bit integers."""


@dataclass(frozen=True)
class Port:
    """An input or output of a graph. An axis is a number, or the name of an open size; without any shape, None."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True, eq=False)
class Attribute:
    """One option of a node, with its value."""

    name: str
    kind: int
    number: float = 0.0
    integer: int = 0
    text: str = ""
    floats: tuple[float, ...] = ()
    integers: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    tensor: Array | None = None
    graph: GraphRecord | None = None
    refers_to: str = ""


@dataclass(frozen=True, eq=False)
class Node:
    """One operation. Absent optional inputs are empty names; `opset` is the version of its definition."""

    index: int
    kind: str
    name: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    opset: int = 0

    @property
    def where(self) -> str:
        """Its name or output, its kind, its domain if not ONNX's own, and its opset."""
        called = self.name or next((o for o in self.outputs if o), f"number {self.index}")
        domain = f"{self.domain}." if self.domain else ""
        return f"node {called!r} ({domain}{self.kind}, opset {self.opset})"

    def error(self, cause: str, next_step: str = DAMAGED) -> ModelError:
        return ModelError(self.where, cause, next_step)


@dataclass(frozen=True, eq=False)
class GraphRecord:
    name: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True, eq=False)
class Function:
    """A node kind that the file itself defines by other nodes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    defaults: Mapping[str, Attribute]


@dataclass(frozen=True, eq=False)
class Model:
    graph: GraphRecord
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], Function] = field(default_factory=dict)
    narrow: frozenset[str] = frozenset()
    """Constants that the file stores in 4 bits, unpacked to 8 bits here."""
    producer: str = ""


def read(path: Path) -> Model:
    return parse(path.read_bytes(), path.name, path.parent)


def parse(data: bytes, file: str, folder: Path | None = None) -> Model:
    """The records in a file's bytes; `folder` is the folder of external weights, if allowed."""
    try:
        return _Reader(file, folder).model(Message(memoryview(data)))
    except Damaged as error:
        raise ModelError(file, f"{error}.", DAMAGED) from None


class _Reader:
    def __init__(self, file: str, folder: Path | None) -> None:
        self.file = file
        self.folder = folder
        self.opsets: Mapping[str, int] = {}
        self.nodes = 0
        self.narrow: set[str] = set()

    def model(self, root: Message) -> Model:
        self.opsets = _opsets(root, 8)
        graph = root.message(7)
        if graph is None:
            raise ModelError(self.file, "it contains no ONNX graph.", "Give a file written by an ONNX exporter.")
        functions = {}
        for raw in root.messages(25):
            own, outer = _opsets(raw, 9), self.opsets
            self.opsets = {**outer, **own}
            functions[raw.text(10), raw.text(1)] = Function(
                tuple(raw.texts(4)),
                tuple(raw.texts(5)),
                self._nodes(raw.messages(7)),
                {a.name: a for a in map(self._attribute, raw.messages(11))},
            )
            self.opsets = outer
        return Model(self._graph(graph), self.opsets, functions, frozenset(self.narrow), root.text(2))

    def _graph(self, raw: Message) -> GraphRecord:
        if raw.count(15):
            raise ModelError(self.file, "it holds sparse constants, which nnbuild does not read.", EXPORT_AGAIN)
        constants = {}
        for each in raw.messages(5):
            constants[each.text(8)] = self._tensor(each)
        ports = tuple(self._port(p) for p in raw.messages(11))
        inputs = tuple(p for p in ports if p.name not in constants)
        outputs = tuple(self._port(p) for p in raw.messages(12))
        return GraphRecord(raw.text(2), self._nodes(raw.messages(1)), constants, inputs, outputs)

    def _nodes(self, found: Sequence[Message]) -> tuple[Node, ...]:
        self.nodes += len(found)
        if self.nodes > MAX_NODES:
            raise ModelError(self.file, f"it has more than {MAX_NODES} nodes.", SMALLER)
        return tuple(self._node(i, raw) for i, raw in enumerate(found))

    def _node(self, index: int, raw: Message) -> Node:
        domain = raw.text(7)
        domain = "" if domain == "ai.onnx" else domain
        attributes = {a.name: a for a in map(self._attribute, raw.messages(5))}
        inputs, outputs = tuple(raw.texts(1)), tuple(raw.texts(2))
        opset = self.opsets.get(domain, 0)
        return Node(index, raw.text(4), raw.text(3), domain, inputs, outputs, attributes, opset)

    def _attribute(self, raw: Message) -> Attribute:
        tensor, graph = raw.message(5), raw.message(6)
        numbers = raw.fixed(2, "float32")
        return Attribute(
            raw.text(1),
            raw.integer(20),
            float(numbers[-1]) if len(numbers) else 0.0,
            raw.integer(3),
            raw.text(4),
            tuple(float(v) for v in raw.fixed(7, "float32")),
            tuple(raw.integers(8)),
            tuple(raw.texts(9)),
            None if tensor is None else self._tensor(tensor),
            None if graph is None else self._graph(graph),
            raw.text(21),
        )

    def _port(self, raw: Message) -> Port:
        name, kind = raw.text(1), raw.message(2)
        tensor = None if kind is None else kind.message(1)
        if tensor is None:
            return Port(name, "none" if kind is None else "sequence", None)
        dtype = _type(tensor.integer(1))
        shape = tensor.message(2)
        if shape is None:
            return Port(name, dtype, None)
        dims: list[int | str] = []
        for dim in shape.messages(1):
            size = dim.integer(1, -1)
            dims.append(size if 1 in dim and size >= 0 else dim.text(2) or "?")
        return Port(name, dtype, tuple(dims))

    def _tensor(self, raw: Message) -> Array:
        name, dtype, shape = raw.text(8), _type(raw.integer(2)), tuple(raw.integers(1))
        where = f"constant {name!r}" if name else "a constant"
        if len(shape) > MAX_AXES or min(shape, default=0) < 0 or prod(shape) > MAX_ELEMENTS:
            raise ModelError(where, f"its shape is {list(shape[:16])}.", SMALLER)
        if dtype not in TYPES.values():
            raise ModelError(where, f"its type is {dtype}, which nnbuild does not read.", EXPORT_AGAIN)
        if dtype in ("int4", "uint4"):
            self.narrow.add(name)
        if dtype == "string":
            return _strings(where, raw, shape)
        if raw.integer(14) == 1:
            return _shaped(where, dtype, shape, self._external(where, raw, _stored_size(dtype, prod(shape))))
        data = raw.blob(9)
        if data is not None:
            return _shaped(where, dtype, shape, bytes(data))
        return _listed(where, dtype, shape, raw)

    def _external(self, where: str, raw: Message, size: int) -> bytes:
        entries = {entry.text(1): entry.text(2) for entry in raw.messages(13)}
        return read_external(where, self.folder, entries, size)


def _opsets(raw: Message, number: int) -> dict[str, int]:
    found = {each.text(1): each.integer(2) for each in raw.messages(number)}
    return {("" if domain == "ai.onnx" else domain): version for domain, version in found.items()}


def _type(number: int) -> str:
    return TYPES.get(number, f"ONNX type {number}")


def _stored_size(dtype: str, count: int) -> int:
    if dtype in ("int4", "uint4"):
        return (count + 1) // 2
    return count * (2 if dtype == "bfloat16" else np.dtype(dtype).itemsize)


def _shaped(where: str, dtype: str, shape: Shape, data: bytes) -> Array:
    """Raw bytes, which ONNX stores little-endian."""
    count = prod(shape)
    if len(data) != _stored_size(dtype, count):
        raise ModelError(where, f"it holds {len(data)} bytes, which is not the size of {dtype} {list(shape)}.", DAMAGED)
    if dtype in ("int4", "uint4"):
        return _halves(dtype, np.frombuffer(data, np.uint8), count).reshape(shape)
    if dtype == "bfloat16":
        return _from_bfloat16(np.frombuffer(data, "<u2")).reshape(shape)
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(shape)


def _halves(dtype: str, packed: Array, count: int) -> Array:
    """Unpacks two 4-bit numbers per byte, the lower half first."""
    values = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[:count].astype(np.int8)
    if dtype == "int4":
        return np.where(values > 7, values - 16, values).astype(np.dtype(np.int8, metadata=HALVES))
    return values.astype(np.dtype(np.uint8, metadata=HALVES))


def _from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _listed(where: str, dtype: str, shape: Shape, raw: Message) -> Array:
    """Values in typed lists instead of raw bytes."""
    number = LISTED.get(dtype, 5)
    if dtype in ("float32", "float64"):
        values: Array = raw.fixed(number, dtype)
    else:
        found = raw.varints(number)
        if dtype == "float16":
            values = found.astype(np.uint16).view(np.float16)
        elif dtype == "bfloat16":
            values = _from_bfloat16(found.astype(np.uint16))
        elif dtype in ("int4", "uint4"):
            values = _halves(dtype, found.astype(np.uint8), prod(shape))
        else:
            values = found.astype(np.int64).astype(dtype) if dtype != "uint64" else found
    if len(values) != prod(shape):
        raise ModelError(
            where, f"it holds {len(values)} values, which is not the count of {dtype} {list(shape)}.", DAMAGED
        )
    return values.reshape(shape)


def _strings(where: str, raw: Message, shape: Shape) -> Array:
    found = raw.texts(6)
    if len(found) != prod(shape):
        raise ModelError(where, f"it holds {len(found)} strings, which is not the count of {list(shape)}.", DAMAGED)
    return np.array(found, dtype=str).reshape(shape)
