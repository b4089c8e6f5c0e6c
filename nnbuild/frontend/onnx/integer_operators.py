"""Integer operators such as QLinearConv, read as their float equivalents between quantizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nnbuild.frontend.onnx.call import Call, Item
from nnbuild.frontend.onnx.quantized import OPERATORS as CONVERSIONS
from nnbuild.frontend.onnx.quantized import as_scaled, dequantized, expect_scale, form_by
from nnbuild.frontend.onnx.scope import Scaled
from nnbuild.model.graph import Array
from nnbuild.ops.layout import Value


class Dequantized(Call):
    """Treats an integer node as its float equivalent: inputs dequantized, result quantized."""

    def __init__(
        self, call: Call, operands: Sequence[tuple[int, int, int] | int | None], out: tuple[int, int], opset: int = 0
    ) -> None:
        """`operands` are (values, scale, zero point) or a plain input, by position; `out` is (scale, zero point).
        `opset` overrides the file's version of the standard operator."""
        super().__init__(call.importer, call.scope, call.node, call)
        self._opset = opset or call.importer.model.opsets.get("", 13)
        self._operands: list[Item | None] = []
        self._held: dict[int, Scaled] = {}
        for index, operand in enumerate(operands):
            self._operands.append(None if operand is None else self._operand(call, index, operand))
        zero = call.constant(out[1]) if call.given(out[1]) else np.zeros((), np.uint8)
        self.dtype_out = zero.dtype.name
        self.target = form_by(self.dtype_out, call.constant(out[0]), zero)
        if self.target is None:
            expect_scale(call, call.constant(out[0]))
            raise call.unsupported(f"its result is quantized to {self.dtype_out}")

    def _operand(self, call: Call, index: int, operand: tuple[int, int, int] | int) -> Item | None:
        if isinstance(operand, int):
            return call.any(operand) if call.given(operand) else None
        values, scale = call.item(operand[0]), call.constant(operand[1])
        zero = call.constant(operand[2]) if call.given(operand[2]) else np.zeros((), np.uint8)
        axis = 0 if self.node.kind == "QLinearConv" or call.integer("transB") else -1
        if isinstance(values, np.ndarray):
            self._held[index] = Scaled(values, scale, zero, axis)
            return dequantized(call, values, scale, zero, axis)
        return as_scaled(call, values, scale, zero, axis)

    @property
    def opset(self) -> int:
        return self._opset

    @property
    def count(self) -> int:
        return len(self._operands)

    def given(self, index: int) -> bool:
        return index < len(self._operands) and self._operands[index] is not None

    def any(self, index: int) -> Item:
        found = self._operands[index] if index < len(self._operands) else None
        if found is None:
            raise self.error(f"its input {index} is missing.")
        return found

    def take(self, index: int, values: Array, held: Scaled) -> None:
        self._operands[index], self._held[index] = values, held

    def scaled(self, index: int) -> Scaled | None:
        return self._held.get(index)

    def put(self, item: Item, index: int = 0) -> None:
        if isinstance(item, np.ndarray):
            item = self.as_value(item)
        assert self.target is not None
        if isinstance(item, Value):
            item = self.converted(item, self.target, self.dtype_out)
        super().put(item, index)


def _with_bias(call: Call, bias: int, inner: Dequantized, factor: float = 1.0) -> Dequantized:
    """Adds weights and a bias in steps of their products, times a factor."""
    if call.given(bias):
        x, w = call.constant(1), call.constant(4)
        steps = (x.astype(np.float64) * w.astype(np.float64)).reshape(-1) * factor
        added = call.constant(bias)
        inner.take(2, (added * steps).astype(np.float32), Scaled(added, steps, np.zeros(1, np.int32), 0))
    return inner


LAYER = [(0, 1, 2), (3, 4, 5), None]
"""Input, weights, and a bias that is none of the operator's quantized operands."""


def qlinear_conv(call: Call) -> None:
    from nnbuild.frontend.onnx.convolution import conv

    conv(_with_bias(call, 8, Dequantized(call, LAYER, (6, 7))))


class _Product(Dequantized):
    """Its factor alpha is part of the weights' scales."""

    def number(self, name: str, default: float = 0.0) -> float:
        return 1.0 if name == "alpha" and 1 in self._held else super().number(name, default)


def qgemm(call: Call) -> None:
    """The factor alpha applies to the bias, too: it is quantized in steps of the products times alpha."""
    from nnbuild.frontend.onnx.products import gemm

    inner, alpha = _Product(call, LAYER, (7, 8)), call.number("alpha", 1.0)
    held, weights = inner.scaled(1), inner.any(1)
    if held is not None and isinstance(weights, np.ndarray):
        inner.take(1, np.float32(alpha) * weights, replace(held, scales=held.scales * np.float32(alpha)))
    gemm(_with_bias(call, 6, inner, alpha))


def qlinear_matmul(call: Call) -> None:
    from nnbuild.frontend.onnx.products import matmul

    matmul(Dequantized(call, [(0, 1, 2), (3, 4, 5)], (6, 7)))


def qlinear_concat(call: Call) -> None:
    from nnbuild.frontend.onnx.data_movement import concat

    concat(Dequantized(call, [(i, i + 1, i + 2) for i in range(2, call.count - 2, 3)], (0, 1)))


OPERATORS: dict[str, Callable[[Call], None]] = {"QLinearConv": qlinear_conv, "QLinearMatMul": qlinear_matmul}


def _of_microsoft(
    kind: str, operands: Sequence[tuple[int, int, int] | int], out: tuple[int, int]
) -> Callable[[Call], None]:
    """An onnxruntime operator that is a standard one on integers."""

    def read(call: Call) -> None:
        from nnbuild.frontend.onnx.importer import OPERATORS as standard

        standard[kind](Dequantized(call, operands, out))

    return read


def _channels_first(read: Callable[[Call], None]) -> Callable[[Call], None]:
    def pooled(call: Call) -> None:
        if call.integer("channels_last"):
            raise call.unsupported("its images are channels last")
        read(call)

    return pooled


def qlinear_softmax(call: Call) -> None:
    """Its opset selects the standard operator's version."""
    from nnbuild.frontend.onnx.reducing import softmax

    softmax(Dequantized(call, [(0, 1, 2)], (3, 4), call.integer("opset", 13)))


FOREIGN: dict[str, Callable[[Call], None]] = {
    **CONVERSIONS,
    "QGemm": qgemm,
    "QLinearConcat": qlinear_concat,
    "QLinearWhere": _of_microsoft("Where", [0, (1, 2, 3), (4, 5, 6)], (7, 8)),
    "QLinearReduceMean": _of_microsoft("ReduceMean", [(0, 1, 2)], (3, 4)),
    "QLinearAdd": _of_microsoft("Add", [(0, 1, 2), (3, 4, 5)], (6, 7)),
    "QLinearMul": _of_microsoft("Mul", [(0, 1, 2), (3, 4, 5)], (6, 7)),
    "QLinearSigmoid": _of_microsoft("Sigmoid", [(0, 1, 2)], (3, 4)),
    "QLinearLeakyRelu": _of_microsoft("LeakyRelu", [(0, 1, 2)], (3, 4)),
    "QLinearGlobalAveragePool": _channels_first(_of_microsoft("GlobalAveragePool", [(0, 1, 2)], (3, 4))),
    "QLinearAveragePool": _channels_first(_of_microsoft("AveragePool", [(0, 1, 2)], (3, 4))),
    "QLinearSoftmax": qlinear_softmax,
}
