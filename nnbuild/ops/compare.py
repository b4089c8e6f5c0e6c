"""Elementwise comparison of two operands: 1 where it holds, else 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import ints, requantize
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.binary import aligned, common_shape, operands
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
EQUALITIES = ("equal", "not_equal")
SPARE = 8
"""The spare bits with which TFLite compares numbers of different scales."""


@dataclass(frozen=True)
class Compare(Attributes):
    """left (function) right, as truth values. One operand may be the constant "left" or "right"."""

    kind: ClassVar[str] = "compare"
    optional: ClassVar[tuple[str, ...]] = ("left", "right")

    function: str = "equal"
    fine: bool = False
    """Whether quantized operands keep their bits where both scales are below 1; in TFLite they lose them."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no comparison named {self.function!r}.")
        return (common_shape(inputs, constants),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (FUNCTIONS[self.function](*aligned(inputs, constants)).astype(np.int8),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Floats and whole numbers directly; quantized numbers like TFLite."""
        constants = {role: constant.data for role, constant in site.constants.items()}
        scales = self.scales(site)
        if scales is None:
            return self.reference(inputs, constants)
        left, right = aligned(inputs, constants)
        zeros = self.zeros(site)
        values = [requantize((ints(v) - z) << SPARE, *s) for v, z, s in zip((left, right), zeros, scales, strict=True)]
        return (np.asarray(FUNCTIONS[self.function](*values), np.int8),)

    def zeros(self, site: Site) -> tuple[int, int]:
        left, right = _sides(site)
        return quant_of(left).zero_point, quant_of(right).zero_point

    def scales(self, site: Site) -> tuple[Multiplier, Multiplier] | None:
        """The scales of quantized operands to a common one; None where they compare directly."""
        left, right = _sides(site)
        if left.quant is None or right.quant is None or left.quant == right.quant:
            return None
        scales = left.quant.scale, right.quant.scale
        largest = max(scales)
        if largest >= 1.0 or self.fine:  # TFLite accepts smaller ones only
            scales = scales[0] / (2 * largest), scales[1] / (2 * largest)
        return quantize_multiplier(scales[0]), quantize_multiplier(scales[1])


def finds_missing(op: Op) -> bool:
    """Whether it looks for missing values: NaN alone differs from itself."""
    itself = len(op.inputs) == 2 and op.inputs[0] == op.inputs[1]
    return itself and isinstance(op.attributes, Compare) and op.attributes.function in EQUALITIES


def may_miss(graph: Graph) -> frozenset[str]:
    """The inputs whose values may be missing: floats, where anything looks for what is missing."""
    floats = frozenset(name for name in graph.inputs if graph.tensors[name].dtype == "float32")
    return floats if any(map(finds_missing, graph.ops)) else frozenset()


def _sides(site: Site) -> tuple[Tensor | Constant, Tensor | Constant]:
    tensors: list[Tensor | Constant] = list(site.inputs)
    return operands(tensors, dict[str, Tensor | Constant](site.constants))
