"""Local response normalization across channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.lrn import LrnScales, lrn, lrn_scales
from nnbuild.numeric.rounding import limits
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import centred, clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class LRN(Attributes):
    """x / (bias + alpha * sum of squares within `radius` channels) ** beta."""

    kind: ClassVar[str] = "lrn"

    radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) > 0 and self.radius >= 0, "it needs channels and a radius of at least 0.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        kind = x.dtype.type
        return (x / (kind(self.bias) + kind(self.alpha) * self._squares(x)) ** kind(self.beta),)

    def _squares(self, x: Array) -> Array:
        """The sum of squares around each channel."""
        around = [(0, 0)] * (x.ndim - 1) + [(self.radius, self.radius)]
        squares = np.pad(np.square(x), around)
        sums: Array = np.lib.stride_tricks.sliding_window_view(squares, 2 * self.radius + 1, axis=-1).sum(axis=-1)
        return sums

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Our own: see `numeric.lrn`."""
        x = centred(site, inputs[0]).astype(np.int64)
        values = lrn(x, self._squares(x), quant_of(site.outputs[0]).zero_point, self.scales(site))
        return (clamped(values, NO_CLAMP, site.outputs[0]),)

    def scales(self, site: Site) -> LrnScales:
        scale, largest = quant_of(site.inputs[0]).scale, self.largest_squares(site)
        return lrn_scales(scale, largest, quant_of(site.outputs[0]).scale, (self.bias, self.alpha, self.beta))

    def largest_squares(self, site: Site) -> int:
        x = site.inputs[0]
        farthest = max(abs(limit - quant_of(x).zero_point) for limit in limits(x.dtype))
        return min(2 * self.radius + 1, site.shape()[-1]) * int(farthest) ** 2

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(inputs[0]) * (2 * self.radius + 1)
