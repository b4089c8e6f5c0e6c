"""Conversion between number formats: float to integers, integers to float, one scale to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.edge import dequantize, quantize
from nnbuild.numeric.elementwise import rescale, rescale_multiplier
from nnbuild.numeric.multiplier import WideScale, wide_scale
from nnbuild.numeric.rounding import ints, scale_wide
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes
from nnbuild.ops.integer import as_type, clamped, quant_of, rescaled_once, scale_and_limits
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Convert(Attributes):
    """The formats are those of the tensors; in a float graph nothing happens."""

    kind: ClassVar[str] = "convert"

    once: bool = False
    """Whether conversion between scales is rounded once, as in ONNX, rather than twice, as in QUANTIZE."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0],)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        source, out = site.inputs[0], site.outputs[0]
        if source.quant is None:
            return (np.asarray(quantize(inputs[0], *scale_and_limits(out)), out.dtype),)
        if out.quant is None:
            return (dequantize(inputs[0], source.quant.scale, source.quant.zero_point),)
        if out.dtype == "int32":
            return (as_type(scale_wide(ints(inputs[0]) - source.quant.zero_point, *self.into_cell(site)), out),)
        if self.once:
            return (clamped(rescaled_once(inputs[0], site.inputs[0], out), NO_CLAMP, out),)
        scale = rescale_multiplier(source.quant.scale, quant_of(out).scale)
        values = rescale(inputs[0], source.quant.zero_point, quant_of(out).zero_point, scale)
        return (clamped(values, NO_CLAMP, out),)

    def into_cell(self, site: Site) -> WideScale:
        """32 bits are the cell of an LSTM: our own rule, which saturates."""
        return wide_scale(quant_of(site.inputs[0]).scale / quant_of(site.outputs[0]).scale, 30)
