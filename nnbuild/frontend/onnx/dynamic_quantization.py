"""Integers whose scale is computed at run time: DynamicQuantizeLinear, and the products that follow it.

Sums of products of integers are computed in float32, which is exact below 2^24 and within one part in 2^24 above.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared, times_plus, wrapped
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call, Item
from nnbuild.frontend.onnx.convolution import conv
from nnbuild.frontend.onnx.layout import Value
from nnbuild.frontend.onnx.products import matmul
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.frontend.other_arithmetic import SATURATED_SUMS
from nnbuild.model.graph import Array


def dynamic_quantize(call: Call) -> None:
    """Quantizes to 8 bits between a tensor's extremes, including 0."""
    call.assembly.unlike = SATURATED_SUMS
    x = call.real(0)
    axes = range(len(x.shape))
    low, high = (
        combined(call, f"{function}imum", reduced(call, x, function, axes, False), np.float32(0))
        for function in ("min", "max")
    )
    scale = times_plus(call, combined(call, "subtract", high, low), 1 / 255)
    is_zero = compared(call, "equal", scale, np.zeros((), np.float32))
    scale = chosen(call, is_zero, np.ones((), np.float32), scale)  # of a tensor of zeros
    zero = combined(call, "divide", call.activated(low, "negative"), scale)
    zero = call.activated(call.activated(zero, "clamp", (0.0, 255.0)), "round")
    steps = combined(call, "add", call.activated(combined(call, "divide", x, scale), "round"), zero)
    call.put(call.converted(call.activated(steps, "clamp", (0.0, 255.0)), INT32, "uint8"))
    call.put(scale, 1)
    call.put(call.converted(zero, INT32, "uint8"), 2)


class OfWhole(Call):
    """Treats an integer node as the equivalent float node; zero points are subtracted first."""

    def __init__(self, call: Call, operands: tuple[tuple[int, int], ...], axes: tuple[int | None, ...]) -> None:
        super().__init__(call.importer, call.scope, call.node, call)
        self._operands = [self._less(call, *pair, axis) for pair, axis in zip(operands, axes, strict=True)]

    def _less(self, call: Call, index: int, zero: int, axis: int | None) -> Value | Array:
        item = call.item(index)
        taken = call.item(zero) if call.given(zero) else np.zeros((), np.int32)
        rank = len(item.shape)
        if isinstance(taken, np.ndarray):
            taken = taken.astype(np.float32)
            if taken.size > 1 and axis is not None:
                taken = taken.reshape([-1 if i == axis % rank else 1 for i in range(rank)])
            if isinstance(item, np.ndarray):
                return np.asarray(item.astype(np.float32) - taken)
        else:
            taken = call.converted(taken, FLOAT, "float32")
        value = call.converted(call.as_value(item), FLOAT, "float32")
        if isinstance(taken, np.ndarray) and not taken.any():
            return value
        return combined(call, "subtract", value, taken)

    @property
    def count(self) -> int:
        return len(self._operands)

    def given(self, index: int) -> bool:
        return index < len(self._operands)

    def any(self, index: int) -> Item:
        if not self.given(index):
            raise self.error(f"its input {index} is missing.")
        return self._operands[index]

    def scaled(self, index: int) -> None:
        return None

    def put(self, item: Item, index: int = 0) -> None:
        if isinstance(item, Value):
            item = wrapped(self, self.converted(item, INT32, "int32"))
        super().put(item, index)


def matmul_integer(call: Call) -> None:
    matmul(OfWhole(call, ((0, 2), (1, 3)), (-2, -1)))


def conv_integer(call: Call) -> None:
    conv(OfWhole(call, ((0, 2), (1, 3)), (None, 0)))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
}
