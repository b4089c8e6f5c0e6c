"""Arithmetic of 32-bit whole numbers that wraps: indices, counts and truth values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.binary import aligned, common_shape
from nnbuild.ops.site import Site


def _quotient(left: Array, right: Array) -> Array:
    """Division towards zero; division by zero gives 0."""
    size = np.abs(left) // np.maximum(np.abs(right), 1)
    return np.where(right == 0, 0, size * np.sign(left) * np.sign(right))


def _floor(left: Array, right: Array) -> Array:
    return np.where(right == 0, 0, left // np.where(right == 0, 1, right))


FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": _quotient,
    "floor_divide": _floor,
    "floor_mod": lambda left, right: np.where(right == 0, 0, left - _floor(left, right) * right),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "right_shift": lambda left, right: left >> right.clip(0, 31),
}


@dataclass(frozen=True)
class Whole(Attributes):
    """left (function) right. One operand may be the constant "left" or "right"."""

    kind: ClassVar[str] = "whole"
    optional: ClassVar[tuple[str, ...]] = ("left", "right")

    function: str = "add"

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no whole-number operation named {self.function!r}.")
        return (common_shape(inputs, constants),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        left, right = (v.astype(np.int64) for v in aligned(inputs, constants))
        result = FUNCTIONS[self.function](left, right)
        return (result.astype(np.int32),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        constants = {role: constant.data for role, constant in site.constants.items()}
        return (self.reference(inputs, constants)[0].astype(site.outputs[0].dtype),)
