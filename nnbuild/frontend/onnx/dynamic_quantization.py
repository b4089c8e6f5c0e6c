"""Integers whose scale is computed at run time: DynamicQuantizeLinear, and the products that follow it.

Products of bytes by constant weights are those of the integer kernels. Their sums are float32, exact below 2^24 and
within one part in 2^24 above; so are the other products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared, wrapped
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call, Item
from nnbuild.frontend.onnx.convolution import conv, padding, per_axis
from nnbuild.frontend.onnx.data_movement import joined, repeated
from nnbuild.frontend.onnx.products import matmul
from nnbuild.frontend.onnx.quantized import along
from nnbuild.frontend.onnx.records import Node
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.frontend.onnx.scope import Scaled, Scope
from nnbuild.frontend.onnx.type_numbers import TYPE_NAMES
from nnbuild.frontend.onnx.weighted import as_bytes
from nnbuild.frontend.other_arithmetic import SATURATED_SUMS
from nnbuild.model.graph import Array, Quant
from nnbuild.ops.base import Pair
from nnbuild.ops.layout import Value

FROM_ZERO: Form = ("int8", Quant((1.0,), -128))
"""Numbers from 0 to 255, in signed bytes."""
BYTES: dict[str, Form] = {"uint8": FROM_ZERO, "int8": ("int8", Quant((1.0,), 0))}
"""How bytes of a type are stored for a product."""


def dynamic_quantize(call: Call) -> None:
    """Quantizes to 8 bits between a tensor's extremes, including 0."""
    call.assembly.unlike = SATURATED_SUMS
    x = call.real(0)
    axes = range(len(x.shape))
    low, high = (
        combined(call, f"{function}imum", reduced(call, x, function, axes, False), np.float32(0))
        for function in ("min", "max")
    )
    scale = combined(call, "divide", combined(call, "subtract", high, low), np.float32(255))
    is_zero = compared(call, "equal", scale, np.zeros((), np.float32))
    scale = chosen(call, is_zero, np.ones((), np.float32), scale)  # of a tensor of zeros
    zero = combined(call, "divide", call.activated(low, "negative"), scale)
    zero = call.activated(call.activated(zero, "clamp", (0.0, 255.0)), "round")
    steps = combined(call, "add", call.activated(combined(call, "divide", x, scale), "round"), zero)
    call.put(call.converted(steps, FROM_ZERO, "uint8"))
    call.put(scale, 1)
    call.put(call.converted(zero, INT32, "uint8"), 2)


class _Integers(Call):
    """Treats an integer node as the equivalent float node, of these operands."""

    def __init__(self, call: Call, operands: Sequence[Value | Array]) -> None:
        super().__init__(call.importer, call.scope, call.node, call)
        self._operands = operands

    @property
    def count(self) -> int:
        return len(self._operands)

    def given(self, index: int) -> bool:
        return index < len(self._operands)

    def any(self, index: int) -> Item:
        if not self.given(index):
            raise self.error(f"its input {index} is missing.")
        return self._operands[index]

    def scaled(self, index: int) -> Scaled | None:
        return None

    def put(self, item: Item, index: int = 0) -> None:
        if isinstance(item, Value):
            if _read_as_floats(self.scope, self.node.outputs[0]):
                item = replace(item, dtype="int32")  # whole numbers, which stay floats
            else:
                item = wrapped(self, self.converted(item, INT32, "int32"))
        super().put(item, index)


class _InBytes(_Integers):
    """The products of an input's bytes and constant weights are computed as such. The sums do not take the zero point
    of the input into account yet: `zero` times `times`, the sums of each output's weights, is subtracted from them.
    A convolution's input is padded already."""

    def __init__(self, call: Call, x: Value, weights: Scaled, zero: Value | Array, times: Array) -> None:
        super().__init__(call, (x, _less(weights.integers, weights.zeros, weights.axis)))
        self._weights, self._zero, self._times = weights, zero, times

    def scaled(self, index: int) -> Scaled | None:
        return self._weights if index == 1 else None

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        return () if name == "pads" else super().integers(name, default)

    def text(self, name: str, default: str = "") -> str:
        return "NOTSET" if name == "auto_pad" else super().text(name, default)

    def put(self, item: Item, index: int = 0) -> None:
        if isinstance(self._zero, np.ndarray):
            less: Value | Array = self._times * self._zero.astype(np.float32)
        else:
            less = combined(self, "multiply", self.converted(self._zero, FLOAT, "float32"), self._times)
        if isinstance(item, Value) and (isinstance(less, Value) or less.any()):
            item = combined(self, "subtract", item, less)
        super().put(item, index)


FLOATS = next(number for number, name in TYPE_NAMES.items() if name == "float32")


def _read_as_floats(scope: Scope, name: str) -> bool:
    """Whether integers are only cast to floats, perhaps after a bias is added."""
    readers = scope.readers.get(name, [])
    return bool(readers) and name not in scope.ends and all(_reads_floats(scope, node) for node in readers)


def _reads_floats(scope: Scope, node: Node) -> bool:
    added = node.kind == "Add" and not node.domain
    return _to_floats(node) or (added and _read_as_floats(scope, node.outputs[0]))


def _to_floats(node: Node) -> bool:
    to = node.attributes.get("to")
    return node.kind == "Cast" and to is not None and to.integer == FLOATS


def _less(values: Array, zeros: Array, axis: int | None) -> Array:
    """Integers less their zero points, in floats; there may be one for each index of an axis."""
    taken = along(zeros, values.ndim, axis) if zeros.size > 1 and axis is not None else zeros.reshape(())
    return np.asarray(values.astype(np.float32) - taken.astype(np.float32))


def _as_floats(call: Call, item: Value | Array) -> Value:
    if isinstance(item, Value) and call.form(item) == FROM_ZERO:
        return call.as_real(replace(item, dtype="float32"))
    return call.converted(call.as_value(item), FLOAT, "float32")


def _operand(call: Call, index: int) -> Value | Array:
    """An operand's integers, those from 0 to 255 as signed bytes."""
    item = call.any(index)
    return item if isinstance(item, Value) and call.form(item) == FROM_ZERO else call.item(index)


def _difference(call: Call, index: int, zero: int, axis: int | None) -> Value | Array:
    """An operand in floats, less its zero point."""
    item = _operand(call, index)
    taken = call.item(zero) if call.given(zero) else np.zeros((), np.int32)
    if isinstance(taken, np.ndarray):
        if isinstance(item, np.ndarray):
            return _less(item, taken, axis)
        rank = len(item.shape)
        taken = along(taken, rank, axis) if taken.size > 1 and axis is not None else taken
        taken = taken.astype(np.float32)
    else:
        taken = call.converted(taken, FLOAT, "float32")
    value = _as_floats(call, item)
    return value if isinstance(taken, np.ndarray) and not taken.any() else combined(call, "subtract", value, taken)


@dataclass(frozen=True, eq=False)
class _Bytes:
    """The parts of a node on bytes: signed inputs, weights, the zero point of the inputs."""

    x: Value
    weights: Scaled
    zero: Value | Array

    def sums(self, axis: int) -> Array:
        """The sums of each output's weights, which `axis` counts."""
        weights = _less(self.weights.integers, self.weights.zeros, self.weights.axis)
        return np.asarray(weights.sum(axis=tuple(i for i in range(weights.ndim) if i != axis)))


def _bytes_of(call: Call, axis: int, shifted: bool) -> _Bytes | None:
    """These parts, if weights are constants; `shifted` allows a zero point of them."""
    x, kernel = _operand(call, 0), call.item(1)
    zero, point = (call.item(i) if call.given(i) else np.zeros((), call.dtype(i - 2)) for i in (2, 3))
    if not isinstance(kernel, np.ndarray) or not isinstance(point, np.ndarray) or not isinstance(x, Value):
        return None
    weights = Scaled(kernel, np.ones(1, np.float32), point, axis)
    stored = as_bytes(weights, axis, shifted, "int8")
    if isinstance(stored, str):
        call.assembly.in_floats(call.layer, stored)
    if isinstance(stored, str) or prod(zero.shape) != 1:
        return None
    call.expect(x.dtype in BYTES, f"its input is of {x.dtype}.")
    return _Bytes(_in_bytes(call, x), weights, zero)


def _in_bytes(call: Call, x: Value) -> Value:
    form = BYTES[x.dtype]
    return replace(x, dtype="float32") if call.form(x) == form else call.converted(x, form, "float32")


def matmul_integer(call: Call) -> None:
    parts = _bytes_of(call, 1, True) if len(call.shape(1)) == 2 else None
    if parts is not None:
        matmul(_InBytes(call, parts.x, parts.weights, parts.zero, parts.sums(1)))
    else:
        matmul(_Integers(call, [_difference(call, 0, 2, -2), _difference(call, 1, 3, -1)]))


def conv_integer(call: Call) -> None:
    """What is padded is the zero point."""
    sizes, window = call.shape(0)[2:], call.shape(1)[2:]
    strides, dilation = (per_axis(call, name, len(window)) for name in ("strides", "dilations"))
    pads = padding(call, sizes, window, strides, dilation)
    parts = _bytes_of(call, 0, False) if min(map(min, pads)) >= 0 else None
    if parts is None:
        conv(_Integers(call, [_difference(call, 0, 2, None), _difference(call, 1, 3, 0)]))
        return
    x = _surrounded(call, parts.x, _in_bytes(call, call.as_value(parts.zero)), pads)
    conv(_InBytes(call, x, parts.weights, parts.zero, parts.sums(0).reshape(-1, *[1] * len(window))))


def _surrounded(call: Call, x: Value, blank: Value, pads: Sequence[Pair]) -> Value:
    """An image with copies of one number around it."""
    for axis, pair in enumerate(pads, 2):
        shapes = [tuple(count if i == axis else n for i, n in enumerate(x.shape)) for count in pair]
        before, after = ([repeated(call, blank, shape)] if shape[axis] else [] for shape in shapes)
        x = joined(call, [*before, x, *after], axis)
    return x


OPERATORS: dict[str, Callable[[Call], None]] = {
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
}
