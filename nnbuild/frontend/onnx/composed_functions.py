"""Functions of one operand that are made of others: trigonometric, hyperbolic, and the rest of the error function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nnbuild.frontend import composed
from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared, times_plus
from nnbuild.frontend.onnx.call import Call
from nnbuild.ops.layout import Value


@dataclass(frozen=True)
class _Values:
    call: Call

    def of(self, function: str, x: Value, *parameters: float) -> Value:
        return self.call.activated(x, function, parameters)

    def two(self, function: str, left: Value | float, right: Value | float) -> Value:
        return combined(self.call, function, _operand(left), _operand(right))

    def line(self, x: Value, factor: float, summand: float = 0.0) -> Value:
        return times_plus(self.call, x, factor, summand)

    def where(self, comparison: str, x: Value, bound: Value | float, chosen_: Value, other: Value) -> Value:
        return chosen(self.call, compared(self.call, comparison, x, _operand(bound)), chosen_, other)


def _operand(item: Value | float) -> Value | np.float32:
    return item if isinstance(item, Value) else np.float32(item)


def _of_one(function: Callable[[_Values, Value], Value]) -> Callable[[Call], None]:
    return lambda call: call.put(function(_Values(call), call.real(0)))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "Erfc": _of_one(composed.error_rest),  # tf2onnx leaves TensorFlow's, which ONNX does not have
    "Tan": _of_one(composed.tangent),
    "Sinh": _of_one(composed.hyperbolic_sine),
    "Cosh": _of_one(composed.hyperbolic_cosine),
    "Atan": _of_one(composed.arc_tangent),
    "Asin": _of_one(composed.arc_sine),
    "Acos": _of_one(composed.arc_cosine),
    "Asinh": _of_one(composed.area_sine),
    "Acosh": _of_one(composed.area_cosine),
    "Atanh": _of_one(composed.area_tangent),
}
