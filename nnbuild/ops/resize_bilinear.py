"""Bilinear upsampling by whole factors, with pixel centres at halves, as Keras' UpSampling2D does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.numeric.resize import bilinear
from nnbuild.ops.base import Arrays, Attributes, Pair, expect
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    kind: ClassVar[str] = "resize_bilinear"

    factors: Pair = (1, 1)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"upsampling needs [height, width, channels], not {inputs[0]}.")
        expect(min(self.factors) > 0, f"the factors {self.factors} are not positive.")
        height, width, channels = inputs[0]
        return ((height * self.factors[0], width * self.factors[1], channels),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        for axis, factor in enumerate(self.factors, 1):
            low, high, part = zip(*(taps(i, factor, x.shape[axis]) for i in range(x.shape[axis] * factor)), strict=True)
            along = [1] * x.ndim
            along[axis] = -1
            weight = np.asarray(part, x.dtype).reshape(along)
            x = x.take(low, axis) * (1 - weight) + x.take(high, axis) * weight
        return (x,)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's RESIZE_BILINEAR with half-pixel centres; input and output have one scale."""
        return (as_type(bilinear(inputs[0], self.factors), site.outputs[0]),)


def taps(index: int, factor: int, size: int) -> tuple[int, int, float]:
    """The two inputs around an output's centre, and how much the later one weighs."""
    centre = (index + 0.5) / factor - 0.5
    low = int(centre // 1)
    part = centre - low
    return max(low, 0), min(low + 1, size - 1), part if low >= 0 else 0.0
