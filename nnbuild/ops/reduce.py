"""Mean, sum, maximum or minimum over neighbouring axes, such as global pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.elementwise import mean, mean_multiplier, rescale, rescale_multiplier
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.real_scale import IntegerScale, apply_integer_scale
from nnbuild.numeric.rounding import limits
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, around, expect
from nnbuild.ops.integer import clamped, once_scale, quant_of
from nnbuild.ops.site import Site

FUNCTIONS: dict[str, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min}


@dataclass(frozen=True)
class Reduce(Attributes):
    """Over `count` axes from `axis` on; `keep` keeps them with size 1.

    `once` rounds a mean or a sum of bytes once, as in ONNX, rather than twice, as in TFLite.
    """

    kind: ClassVar[str] = "reduce"

    function: str = "mean"
    axis: int = 0
    count: int = 1
    keep: bool = False
    once: bool = False

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no reduction named {self.function!r}.")
        expect(self.axis >= 0 and self.count > 0 and self.axis + self.count <= len(inputs[0]), "its axes do not exist.")
        before, after = inputs[0][: self.axis], inputs[0][self.axis + self.count :]
        return (before + (1,) * (self.count if self.keep else 0) + after,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        axes = tuple(range(self.axis + 1, self.axis + 1 + self.count))
        return (FUNCTIONS[self.function](inputs[0], axis=axes, keepdims=self.keep),)

    def rounds(self) -> bool:
        return self.function in ("mean", "sum")

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.reference([np.abs(inputs[0])], constants)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's MEAN; a sum is a mean without the division, and an extreme is rescaled where scales differ."""
        axes = tuple(range(self.axis + 1, self.axis + 1 + self.count))
        chosen = "sum" if self.function == "mean" else self.function
        values = FUNCTIONS[chosen](inputs[0].astype(np.int64), axis=axes, keepdims=self.keep)
        if chosen == "sum":
            return (self.of_sums(site, values),)
        zeros = quant_of(site.inputs[0]).zero_point, quant_of(site.outputs[0]).zero_point
        return (clamped(rescale(values, *zeros, self.multiplier(site)), NO_CLAMP, site.outputs[0]),)

    def of_sums(self, site: Site, sums: Array) -> Array:
        """The mean, or the sum, from sums of integers."""
        zeros = quant_of(site.inputs[0]).zero_point, quant_of(site.outputs[0]).zero_point
        if self.once:
            result = apply_integer_scale(sums - self.size(site) * zeros[0], self.once_scale(site)) + zeros[1]
        else:
            result = mean(sums, self.size(site), *zeros, self.multiplier(site))
        return clamped(result, NO_CLAMP, site.outputs[0])

    def size(self, site: Site) -> int:
        """The number of values reduced to one."""
        return around(site.shape(), self.axis, self.count)[1]

    def once_scale(self, site: Site) -> IntegerScale:
        """The scale from a sum to the output, proven for all possible sums."""
        return once_scale(self.real(site), self.sums(site), site.outputs[0])

    def real(self, site: Site) -> float:
        """The real scale of a sum."""
        ratio = quant_of(site.inputs[0]).scale / quant_of(site.outputs[0]).scale
        return ratio / (self.size(site) if self.function == "mean" else 1)

    def sums(self, site: Site) -> tuple[int, int]:
        """The smallest and the largest sum of values less their zero point."""
        low, high = (
            (limit - quant_of(site.inputs[0]).zero_point) * self.size(site) for limit in limits(site.inputs[0].dtype)
        )
        return low, high

    def multiplier(self, site: Site) -> Multiplier:
        plain = rescale_multiplier(quant_of(site.inputs[0]).scale, quant_of(site.outputs[0]).scale)
        return mean_multiplier(plain, self.size(site)) if self.function == "mean" else plain
