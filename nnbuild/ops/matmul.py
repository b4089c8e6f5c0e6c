"""The matrix product of two tensors computed at run time, as in attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.real_scale import apply_real_scale
from nnbuild.numeric.rounding import limits, requantize, requantize64
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect
from nnbuild.ops.integer import centred, clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class MatMul(Attributes):
    """[…, m, k] by […, k, n], or by […, n, k] where `turned`, -> […, m, n]; the leading axes are equal.

    `once` rounds sums of bytes times the real scale once, as in ONNX, rather than twice, as in BATCH_MATMUL.
    """

    kind: ClassVar[str] = "matmul"
    clamp: ClassVar[Clamp] = NO_CLAMP

    turned: bool = False
    once: bool = False

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs) == 2 and min(len(shape) for shape in inputs) >= 2, "it needs two operands of two axes each.")
        left, right = inputs
        expect(left[:-2] == right[:-2], f"its operands {left} and {right} differ in their leading axes.")
        depth, columns = right[-2:] if not self.turned else right[:-3:-1]
        expect(left[-1] == depth, f"its operands {left} and {right} do not match.")
        return ((*left[:-1], columns),)

    def _columns(self, right: Array) -> Array:
        return np.swapaxes(right, -1, -2) if self.turned else right

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0] @ self._columns(inputs[1]),)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        (size,) = self.reference([np.abs(x) for x in inputs], constants)
        return (self.drifting(size, inputs, constants, outputs[0]),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's BATCH_MATMUL, or the sum times the real scale, rounded once."""
        sums = (centred(site, inputs[0]) @ self._columns(centred(site, inputs[1], 1))).astype(np.int64)
        out = site.outputs[0]
        if self.once:
            scaled = apply_real_scale(sums, self.real(site))
        else:
            scaled = (requantize64 if out.dtype == "int16" else requantize)(sums, *self.scale(site))
        return (clamped(scaled + quant_of(out).zero_point, NO_CLAMP, out),)

    def scale(self, site: Site) -> Multiplier:
        return quantize_multiplier(self.real(site))

    def real(self, site: Site) -> float:
        """The real scale of a sum. BATCH_MATMUL multiplies the inputs' in single precision."""
        left, right, out = (quant_of(tensor).scale for tensor in (*site.inputs, site.outputs[0]))
        product = left * right if self.once else float(np.float32(left) * np.float32(right))
        return product / out

    def accumulator_range(self, site: Site) -> tuple[int, int]:
        """The accumulator range for any two tensors."""
        left, right = ([limit - quant_of(x).zero_point for limit in limits(x.dtype)] for x in site.inputs)
        products = [a * b for a in left for b in right]
        return site.shape()[-1] * min(products), site.shape()[-1] * max(products)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * inputs[0][-1]
