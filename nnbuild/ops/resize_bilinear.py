"""Bilinear upsampling by whole factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.resize import bilinear
from nnbuild.ops.base import Arrays, Attributes, Pair, expect
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    """With `centred` the pixels' centres lie at halves, as Keras' UpSampling2D means it; without, at their corners."""

    kind: ClassVar[str] = "resize_bilinear"

    factors: Pair = (1, 1)
    centred: bool = True

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"upsampling needs [height, width, channels], not {inputs[0]}.")
        expect(min(self.factors) > 0, f"the factors {self.factors} are not positive.")
        height, width, channels = inputs[0]
        return ((height * self.factors[0], width * self.factors[1], channels),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        for axis, factor in enumerate(self.factors, 1):
            size = x.shape[axis]
            low, high, part = zip(*(taps(i, factor, size, self.centred) for i in range(size * factor)), strict=True)
            along = [1] * x.ndim
            along[axis] = -1
            weight = np.asarray(part, x.dtype).reshape(along)
            x = x.take(low, axis) * (1 - weight) + x.take(high, axis) * weight
        return (x,)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.reference([np.abs(inputs[0])], constants)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's RESIZE_BILINEAR; input and output have one scale."""
        return (as_type(bilinear(inputs[0], self.factors, self.centred), site.outputs[0]),)


def taps(index: int, factor: int, size: int, centred: bool = True) -> tuple[int, int, float]:
    """The two inputs around an output's place, and how much the later one weighs."""
    centre = (index + 0.5) / factor - 0.5 if centred else index / factor
    low = int(centre // 1)
    part = centre - low
    return max(low, 0), min(low + 1, size - 1), part if low >= 0 else 0.0
