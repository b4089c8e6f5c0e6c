"""A leaky ReLU with learnt slopes, per element or shared along axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.elementwise import SlopeScales, prelu, prelu_scales
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class PReLU(Attributes):
    """`slope` has the input's rank; an axis of 1 is shared."""

    kind: ClassVar[str] = "prelu"
    required: ClassVar[tuple[str, ...]] = ("slope",)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        slope = constants["slope"]
        fits = len(slope) == len(inputs[0]) and all(s in (1, n) for s, n in zip(slope, inputs[0], strict=False))
        expect(fits, f"its slopes {slope} do not fit the input {inputs[0]}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        return (np.where(x >= 0, x, x * constants["slope"]),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's; the slopes are a quantized constant with one scale."""
        values = prelu(inputs[0], site.constant("slope"), self.zeros(site), self.scales(site))
        return (clamped(values, NO_CLAMP, site.outputs[0]),)

    def zeros(self, site: Site) -> tuple[int, int, int]:
        """The zero points of input, slope and output."""
        x, slope, out = (quant_of(v) for v in (site.inputs[0], site.constants["slope"], site.outputs[0]))
        return x.zero_point, slope.zero_point, out.zero_point

    def scales(self, site: Site) -> SlopeScales:
        x, slope, out = (quant_of(v) for v in (site.inputs[0], site.constants["slope"], site.outputs[0]))
        return prelu_scales(x.scale, slope.scale, out.scale)
