"""Bilinear resizing to any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.resize import CENTRES, MODES, bilinear, parts
from nnbuild.ops.base import Arrays, Attributes, Pair, expect
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site

LARGEST = 2**15 - 1
"""Sizes whose positions fit the kernels' tables."""


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    """`mode` is one of `numeric.resize.MODES`; Keras aligns the pixels' centres."""

    kind: ClassVar[str] = "resize_bilinear"

    size: Pair = (1, 1)
    mode: str = CENTRES

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"resizing needs [height, width, channels], not {inputs[0]}.")
        expect(self.mode in MODES, f"there is no mode {self.mode!r}.")
        fits = min(self.size) > 0 and max(*self.size, *inputs[0][:2]) <= LARGEST
        expect(fits, f"it resizes {inputs[0][:2]} to {self.size}; sizes go from 1 to {LARGEST}.")
        return ((*self.size, inputs[0][2]),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        for axis, out in enumerate(self.size, 1):
            low, high, part = parts(x.shape[axis], out, self.mode)
            along = [1] * x.ndim
            along[axis] = -1
            weight = np.asarray(part, x.dtype).reshape(along)
            x = x.take(low, axis) * (1 - weight) + x.take(high, axis) * weight
        return (x,)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.reference([np.abs(inputs[0])], constants)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's RESIZE_BILINEAR; input and output have one scale."""
        return (as_type(bilinear(inputs[0], self.size, self.mode), site.outputs[0]),)
