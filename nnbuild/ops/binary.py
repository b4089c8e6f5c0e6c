"""Two operands, element by element, with numpy's broadcasting; one of them may be a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect

T = TypeVar("T")

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@dataclass(frozen=True)
class Binary(Attributes):
    """left (function) right. With one input the other operand is the constant "left" or "right"."""

    kind: ClassVar[str] = "binary"
    optional: ClassVar[tuple[str, ...]] = ("left", "right")

    function: str = "add"
    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no binary operation named {self.function!r}.")
        expect(len(inputs) + len(constants) == 2, "it needs two operands.")
        left, right = operands(inputs, constants)
        try:
            return (tuple(np.broadcast_shapes(left, right)),)
        except ValueError:
            raise ValueError(f"its operands {left} and {right} do not fit each other.") from None

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        left, right = operands(inputs, {role: value[None] for role, value in constants.items()})
        rank = max(left.ndim, right.ndim)
        left, right = (v.reshape(v.shape[0], *(1,) * (rank - v.ndim), *v.shape[1:]) for v in (left, right))
        return (self.clamp.apply(FUNCTIONS[self.function](left, right)),)


def operands(inputs: Sequence[T], constants: Mapping[str, T]) -> tuple[T, T]:
    """(left, right), wherever each comes from."""
    if "left" in constants:
        return constants["left"], inputs[0]
    if "right" in constants:
        return inputs[0], constants["right"]
    return inputs[0], inputs[1]
