"""One node while it is read: its options, its inputs as constants or tensors, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.frontend.assembly import Assembly
from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.records import DAMAGED, EXPORT_AGAIN, Attribute, GraphRecord, Node
from nnbuild.model.graph import WHOLE, Array, Quant, Shape, Tensor
from nnbuild.model.views import View, stored
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.compare import Compare
from nnbuild.ops.convert import Convert
from nnbuild.ops.known import Known
from nnbuild.ops.layout import NUMBERS, Value, plain, seen

if TYPE_CHECKING:
    from nnbuild.frontend.onnx.importer import Importer
    from nnbuild.frontend.onnx.scope import Scaled, Scope

FLOAT: Form = ("float32", None)
INT32: Form = ("int32", WHOLE)
SCALED = frozenset(
    "DequantizeLinear QLinearConv QLinearMatMul Clip MaxPool Identity Transpose Reshape Flatten Squeeze Unsqueeze "
    "Slice Split Gather Expand Tile Pad DepthToSpace SpaceToDepth Resize Upsample".split()
)
"""Operators that take scaled integers unchanged and return such."""
TRUTH: Form = ("int8", WHOLE)
WIDTHS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
"""Integer types narrower than 32 bits, which wrap around earlier."""
MOST_LAID_OUT = 1 << 21
Item = Value | Array | list["Value | Array"]
"""A run-time value, a constant, or a sequence of them."""


def form_of(dtype: str) -> Form:
    """The run-time format of an ONNX type."""
    return FLOAT if dtype in NUMBERS else TRUTH if dtype == "bool" else INT32


class Call:
    target: Form | None = None
    """The format of the result, where the node itself gives it."""

    def __init__(self, importer: Importer, scope: Scope, node: Node, within: Call | None = None) -> None:
        """`within` is the call that this one replaces for the same node."""
        self.importer = importer
        self.assembly: Assembly = importer.assembly
        self.scope = scope
        self.node = node
        self.layer = node.name or next((o for o in node.outputs if o), node.kind)
        self._made: set[str] = within._made if within is not None else set()
        self._results: list[tuple[Item, int]] = within._results if within is not None else []
        self.asked: set[str] = within.asked if within is not None else set()
        """Options that have been read: an unread option is an error."""
        self.taken: set[str] = within.taken if within is not None else set()
        """Inputs that have been read, by name: an unread one is an error, too."""

    # Options.

    @property
    def opset(self) -> int:
        return self.node.opset

    def error(self, cause: str, next_step: str = DAMAGED) -> ModelError:
        return self.node.error(cause, next_step)

    def expect(self, condition: bool, cause: str, next_step: str = DAMAGED) -> None:
        if not condition:
            raise self.error(cause, next_step)

    def within_tables(self, count: int) -> None:
        """Limits the numbers in tables made while the node is read."""
        self.expect(count <= MOST_LAID_OUT, f"it would need a table of {count} numbers.")

    def unsupported(self, what: str) -> ModelError:
        return self.error(f"{what}, which nnbuild does not support.", EXPORT_AGAIN)

    def attribute(self, name: str) -> Attribute | None:
        self.asked.add(name)
        found = self.node.attributes.get(name)
        if found is not None and found.refers_to:
            return self.scope.arguments.get(found.refers_to)
        return found

    def has(self, name: str) -> bool:
        return self.attribute(name) is not None

    def integer(self, name: str, default: int = 0) -> int:
        found = self.attribute(name)
        return default if found is None else found.integer

    def number(self, name: str, default: float = 0.0) -> float:
        found = self.attribute(name)
        value = default if found is None else found.number
        self.expect(isfinite(value) or value == default, f"its option {name!r} is {value}.")
        return value

    def text(self, name: str, default: str = "") -> str:
        found = self.attribute(name)
        return default if found is None else found.text

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        found = self.attribute(name)
        return tuple(default) if found is None else found.integers

    def floats(self, name: str, default: Sequence[float] = ()) -> tuple[float, ...]:
        found = self.attribute(name)
        return tuple(default) if found is None else found.floats

    def graph(self, name: str) -> GraphRecord:
        found = self.attribute(name)
        if found is None or found.graph is None:
            raise self.error(f"its graph {name!r} is missing.")
        return found.graph

    # Inputs.

    @property
    def count(self) -> int:
        return len(self.node.inputs)

    def given(self, index: int) -> bool:
        return index < self.count and bool(self.node.inputs[index])

    def any(self, index: int) -> Item:
        if not self.given(index):
            raise self.error(f"its input {index} is missing.")
        self.taken.add(self.node.inputs[index])
        return self.scope.find(self.node, self.node.inputs[index])

    def item(self, index: int) -> Value | Array:
        found = self.any(index)
        if isinstance(found, list):
            raise self.error(f"its input {self.node.inputs[index]!r} is a sequence.")
        if isinstance(found, Value) and not self._knows_scales(found):
            return self.importer.integers(self, found)
        return found

    def _knows_scales(self, value: Value) -> bool:
        """Whether the node understands the scaled integers of a QuantizeLinear; to others they are plain integers."""
        if value.is_number or self.node.domain or self.node.kind in SCALED:
            return True
        return self.tensor(value.name).quant in (None, WHOLE)

    def sequence(self, index: int) -> list[Value | Array]:
        found = self.any(index)
        if not isinstance(found, list):
            raise self.error(f"its input {self.node.inputs[index]!r} is not a sequence.")
        return found

    def is_constant(self, index: int) -> bool:
        return self.given(index) and isinstance(self.any(index), np.ndarray)

    def is_known(self, index: int) -> bool:
        """Whether the file's input is a constant; to ask is not to read it."""
        return self.given(index) and isinstance(self.scope.find(self.node, self.node.inputs[index]), np.ndarray)

    def constant(self, index: int) -> Array:
        found = self.item(index)
        if isinstance(found, Value):
            name, behind = self.name_of(index), self.assembly.inputs_behind(found.name)
            fixed = " ".join(f"--fix {given}=NUMBER" for given in behind)
            way = f", or fix what it depends on, if that never changes: {fixed}" if fixed else ""
            raise self.error(
                f"its input {name!r} is computed at run time, but nnbuild accepts only a constant there.",
                f"Make it a constant (an initializer){way}.",
            )
        return found

    def scaled(self, index: int) -> Scaled | None:
        """The integers from which a constant was dequantized."""
        self.taken.update(self.node.inputs[index : index + 1])
        return self.scope.scaled_of(self.node.inputs[index]) if self.given(index) else None

    def name_of(self, index: int) -> str:
        return self.node.inputs[index] if index < len(self.node.inputs) else f"number {index}"

    def whole_numbers(self, index: int) -> tuple[int, ...]:
        """A constant of integers, as a flat list."""
        values = self.constant(index)
        self.expect(values.dtype.kind in "iu" and values.size <= 4096, "its argument is not a short list of numbers.")
        return tuple(int(v) for v in values.reshape(-1))

    def indices(self, index: int) -> Array:
        """A constant of integers."""
        values = self.constant(index)
        self.expect(values.dtype.kind in "iu", "its indices are not whole numbers.")
        return values.astype(np.int64)

    def listed(self, name: str, index: int) -> tuple[int, ...] | None:
        """An option in older versions and an input in newer ones; None if absent."""
        if self.given(index):
            return self.whole_numbers(index)
        return self.integers(name) if self.has(name) else None

    def weights(self, index: int) -> Array:
        """A constant of numbers, in float32."""
        return self.as_floats(self.constant(index), self.name_of(index))

    def as_floats(self, values: Array, name: str) -> Array:
        self.expect(values.dtype.kind in "fiub", f"its constant {name!r} does not contain numbers.")
        with np.errstate(all="ignore"):
            values = values.astype(np.float32)
        if not np.isfinite(values).all():
            raise self.error(
                f"its constant {name!r} holds values that are not numbers (NaN or infinity).",
                "The training has diverged, or a mask uses infinity; use a large finite number.",
            )
        return values

    def shape(self, index: int) -> Shape:
        return self.item(index).shape

    def dtype(self, index: int) -> str:
        found = self.item(index)
        return found.dtype if isinstance(found, Value) else found.dtype.name

    def value(self, index: int) -> Value:
        """A run-time input; constants become tensors."""
        return self.as_value(self.item(index), self.name_of(index))

    def as_value(self, item: Value | Array, name: str = "constant") -> Value:
        if isinstance(item, Value):
            return item
        dtype = item.dtype.name
        form = form_of(dtype)
        data = self.as_floats(item, name) if form == FLOAT else as_whole(item, form)
        made = self.add(Known(), [self.importer.anchor()], {"values": data.reshape(data.shape or (1,))}, form)
        return Value(made, stored(item.shape), "float32" if form == FLOAT else dtype)

    def real(self, index: int) -> Value:
        """A run-time input in floating point."""
        return self.as_real(self.value(index))

    def as_real(self, value: Value) -> Value:
        self.expect(value.is_number, f"it computes on {value.dtype}, not on floating point.", EXPORT_AGAIN)
        return self.importer.in_floats(self, value)

    def tensor(self, name: str) -> Tensor:
        return self.assembly.tensors[name]

    def form(self, value: Value) -> Form:
        tensor = self.tensor(value.name)
        return tensor.dtype, tensor.quant

    def axis(self, value: int, rank: int) -> int:
        self.expect(-rank <= value < rank, f"its axis {value} does not exist in a tensor of {rank} axes.")
        return value % rank

    def axes_in_order(self, index: int, rank: int) -> list[int]:
        return [self.axis(v, rank) for v in self.whole_numbers(index)]

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        found = sorted({self.axis(v, rank) for v in values})
        self.expect(len(found) == len(values), f"its axes {list(values)} contain a duplicate.")
        return found

    # Outputs.

    def add(
        self,
        attributes: Attributes,
        names: Sequence[str],
        constants: Mapping[str, Array | tuple[Array, Quant | None]] | None = None,
        form: Form = FLOAT,
        outer: Shape = (),
    ) -> str:
        (made,) = self.adds(attributes, names, [form], constants, outer)
        return made

    def adds(
        self,
        attributes: Attributes,
        names: Sequence[str],
        forms: Sequence[Form],
        constants: Mapping[str, Array | tuple[Array, Quant | None]] | None = None,
        outer: Shape = (),
    ) -> tuple[str, ...]:
        held = {}
        for role, given in (constants or {}).items():
            data, quant = given if isinstance(given, tuple) else (given, None if given.dtype.kind == "f" else WHOLE)
            held[role] = self.assembly.constant(self.node, f"{self.layer}/{role}", np.ascontiguousarray(data), quant)
        like = [Tensor("", (1,), *form) for form in forms]
        made = self.assembly.add(self.node, self.layer, attributes, names, like, held, outer)
        self._made.update(made)
        return made

    def moved(self, attributes: Attributes, name: str) -> str:
        """A reordered or reshaped tensor; repeated requests share one."""
        return self.importer.moved(self, attributes, name)

    def activated(self, value: Value, function: str, parameters: tuple[float, ...] = ()) -> Value:
        made = self.add(Activation(function, parameters), [value.name])
        return replace(value, name=made, dtype="float32")

    def converted(self, value: Value, form: Form, dtype: str) -> Value:
        if self.form(value) == form:
            return replace(value, dtype=dtype)
        once = None not in (form[1], self.form(value)[1]) and form != INT32
        return replace(value, name=self.add(Convert(once), [value.name], form=form), dtype=dtype)

    def truth(self, value: Value) -> Value:
        """Whether each element differs from 0."""
        if value.dtype == "bool":
            return value
        tensor = self.tensor(value.name)
        zero = np.zeros((1,), tensor.dtype)
        made = self.add(Compare("not_equal"), [value.name], {"right": (zero, tensor.quant)}, TRUTH)
        return replace(value, name=made, dtype="bool")

    def plain(self, value: Value) -> Value:
        return plain(self, value)

    def of(self, name: str, shape: Shape, order: Sequence[int] | None = None, dtype: str = "float32") -> Value:
        """Wraps a new tensor as a value whose axes are stored in this order."""
        return Value(name, stored(shape, order), dtype)

    def seen(self, name: str, shape: Shape) -> str:
        return seen(self, name, shape)

    def put(self, item: Item, index: int = 0) -> None:
        """Sets an output of the node."""
        if index >= len(self.node.outputs) or not self.node.outputs[index]:
            return
        self._results.append((item, index))

    def finish(self) -> None:
        """Renames the outputs, which nobody has read yet, to the file's names."""
        called: dict[str, str] = {}
        for item, index in self._results:
            name = self.node.outputs[index]
            if isinstance(item, Value) and item.name in self._made:
                if item.name not in called:
                    called[item.name] = self.importer.named(item.name, name)
                item = replace(item, name=called[item.name])
            if isinstance(item, np.ndarray):
                self.assembly.count(self.node, item.size)
            self.scope.put(self.node, name, item)

    def done(self, name: str, view: View, dtype: str = "float32", index: int = 0) -> None:
        self.put(Value(name, view, dtype), index)


def as_whole(values: Array, form: Form) -> Array:
    """Integers of any width in 32 bits, booleans in 8; out-of-range values saturate."""
    if form == TRUTH:
        return np.asarray(values != 0, np.int8)
    if values.dtype.kind == "f":
        values = np.nan_to_num(values.astype(np.float64), posinf=2.0**31, neginf=-(2.0**31)).clip(-(2.0**31), 2.0**31)
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**31 - 1))
    return np.asarray(np.clip(values.astype(np.int64), -(2**31), 2**31 - 1), np.int32)
