"""Elementwise operations of two operands, with numpy's broadcasting; one may be a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from nnbuild.model.graph import Array, Constant, Quant, Shape, Tensor
from nnbuild.numeric import elementwise
from nnbuild.numeric.multiplier import Multiplier, WideScale, product_scale, quantize_multiplier
from nnbuild.numeric.real_scale import IntegerScale, apply_integer_scale, integer_scale
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect
from nnbuild.ops.device_arithmetic import device_arithmetic_of, sum_of_two
from nnbuild.ops.integer import clamped, quant_of
from nnbuild.ops.site import Site

T = TypeVar("T")

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "squared_difference": lambda left, right: np.square(left - right),
}


@dataclass(frozen=True)
class Binary(Attributes):
    """left (function) right. With one input the other operand is the constant "left" or "right"."""

    kind: ClassVar[str] = "binary"
    optional: ClassVar[tuple[str, ...]] = ("left", "right")

    function: str = "add"
    clamp: Clamp = NO_CLAMP
    once: bool = False
    """Whether a product is rounded once, as in ONNX, rather than twice, as in MUL."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no binary operation named {self.function!r}.")
        return (common_shape(inputs, constants),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        left, right = aligned(inputs, constants)
        return (self.clamp.apply(FUNCTIONS[self.function](left, right)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's, except for operands of maximum and minimum with another scale."""
        left, right = aligned(inputs, {role: constant.data for role, constant in site.constants.items()})
        out, spec = site.outputs[0], device_arithmetic_of(site.op)
        if spec is not None:
            return (clamped(sum_of_two(site, left, right, spec), self.clamp, out),)
        return (clamped(combined(self.function, left, right, formats(site)), self.clamp, out),)


def operands(inputs: Sequence[T], constants: Mapping[str, T]) -> tuple[T, T]:
    """(left, right), inputs or constants."""
    if "left" in constants:
        return constants["left"], inputs[0]
    if "right" in constants:
        return inputs[0], constants["right"]
    return inputs[0], inputs[1]


def common_shape(inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> Shape:
    """The shape to which both operands are broadcast."""
    expect(len(inputs) + len(constants) == 2, "it needs two operands.")
    expect(len(inputs) > 0, "both of its operands are constants, which the file should hold combined.")
    left, right = operands(inputs, constants)
    try:
        return tuple(np.broadcast_shapes(left, right))
    except ValueError:
        raise ValueError(f"its operands {left} and {right} do not match.") from None


def aligned(inputs: Sequence[Array], constants: Arrays) -> tuple[Array, Array]:
    """The operands with one rank: axes are inserted after the batch."""
    left, right = operands(inputs, {role: value[None] for role, value in constants.items()})
    rank = max(left.ndim, right.ndim)
    left, right = (v.reshape(v.shape[0], *(1,) * (rank - v.ndim), *v.shape[1:]) for v in (left, right))
    return left, right


@dataclass(frozen=True)
class Formats:
    """The quantization of the operands and the output, and the width of the output."""

    left: Quant
    right: Quant
    out: Quant
    bits: int
    once: bool = False

    @property
    def zeros(self) -> tuple[int, int, int]:
        return self.left.zero_point, self.right.zero_point, self.out.zero_point

    def sum_scales(self) -> elementwise.AddScales:
        return elementwise.add_scales(self.left.scale, self.right.scale, self.out.scale, self.bits)

    def square_scales(self) -> elementwise.AddScales:
        return elementwise.squared_difference_scales(self.left.scale, self.right.scale, self.out.scale)

    def wide_square_scale(self) -> WideScale | None:
        """For 16 bits, where TFLite has no squared difference."""
        scales = self.left.scale, self.right.scale, self.out.scale
        return elementwise.wide_square_scale(*scales) if self.bits == 16 else None

    def product_scale(self) -> Multiplier:
        return quantize_multiplier(self.real_product())

    def real_product(self) -> float:
        """In float32, like MUL."""
        if self.once:
            return self.left.scale * self.right.scale / self.out.scale
        return product_scale(self.left.scale, self.right.scale, self.out.scale)

    def product_once(self) -> IntegerScale:
        """Proven for all possible products."""
        low, high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        ends = [(low - zero, high - zero) for zero in self.zeros]
        products = [a * b for a in ends[0] for b in ends[1]]
        return integer_scale(self.real_product(), (min(products), max(products)), (ends[2][0] - 1, ends[2][1] + 1))

    def division_scale(self) -> elementwise.DivisionScale:
        return elementwise.division_scale(self.left.scale, self.right.scale, self.out.scale)

    def choice_scales(self) -> tuple[Multiplier, Multiplier]:
        """The scales from each operand of maximum and minimum to the output."""
        left, right = (elementwise.rescale_multiplier(q.scale, self.out.scale) for q in (self.left, self.right))
        return left, right


def formats(site: Site) -> Formats:
    tensors: list[Tensor | Constant] = list(site.inputs)
    left, right = operands(tensors, dict[str, Tensor | Constant](site.constants))
    out = site.outputs[0]
    once = isinstance(site.attributes, Binary) and site.attributes.once
    return Formats(quant_of(left), quant_of(right), quant_of(out), 8 * np.dtype(out.dtype).itemsize, once)


def combined(function: str, left: Array, right: Array, f: Formats) -> Ints:
    """The result before any clamp; the operands have one rank."""
    match function:
        case "add":
            return elementwise.add(left, right, f.zeros, f.sum_scales())
        case "subtract":
            return elementwise.subtract(left, right, f.zeros, f.sum_scales())
        case "multiply":
            if f.once:
                product = (ints(left) - f.zeros[0]) * (ints(right) - f.zeros[1])
                return np.asarray(apply_integer_scale(product, f.product_once()) + f.zeros[2])
            return elementwise.multiply(left, right, f.zeros, f.product_scale())
        case "divide":
            return elementwise.divide(left, right, f.zeros, f.division_scale())
        case "squared_difference":
            return elementwise.squared_difference(left, right, f.zeros, f.square_scales(), f.wide_square_scale())
    scales, zero = f.choice_scales(), f.out.zero_point
    first = elementwise.rescale(left, f.left.zero_point, zero, scales[0])
    second = elementwise.rescale(right, f.right.zero_point, zero, scales[1])
    return np.asarray(FUNCTIONS[function](first, second))
