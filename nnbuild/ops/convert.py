"""From one number format to another: float to integers, integers to float, one scale to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.numeric.edge import dequantize, quantize
from nnbuild.numeric.elementwise import rescale, rescale_multiplier
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes
from nnbuild.ops.integer import clamped, quant_of, scale_and_limits
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Convert(Attributes):
    """The formats are those of the tensors; in a float graph nothing happens."""

    kind: ClassVar[str] = "convert"

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0],)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        source, out = site.inputs[0], site.outputs[0]
        if source.quant is None:
            return (np.asarray(quantize(inputs[0], *scale_and_limits(out)), out.dtype),)
        if out.quant is None:
            return (dequantize(inputs[0], source.quant.scale, source.quant.zero_point),)
        scale = rescale_multiplier(source.quant.scale, quant_of(out).scale)
        values = rescale(inputs[0], source.quant.zero_point, quant_of(out).zero_point, scale)
        return (clamped(values, NO_CLAMP, out),)
