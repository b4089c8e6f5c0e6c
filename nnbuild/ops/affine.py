"""A factor and a summand for every index of one axis: BatchNormalization at inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.real_scale import apply_real_scale
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect, signless
from nnbuild.ops.integer import centred, clamped, quant_of, real_scales, requantization
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Affine(Attributes):
    """x * scale + shift, both of the size of `axis`."""

    kind: ClassVar[str] = "affine"
    required: ClassVar[tuple[str, ...]] = ("scale", "shift")

    axis: int = 0
    clamp: Clamp = NO_CLAMP
    once: bool = False
    """Whether sums of bytes times the real scale are rounded once, as in ONNX, rather than twice."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(0 <= self.axis < len(inputs[0]), f"axis {self.axis} does not exist in {inputs[0]}.")
        size = (inputs[0][self.axis],)
        for role in self.required:
            expect(constants[role] == size, f"its {role} has the shape {constants[role]}, not {size}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        along = self._along(x)
        return (self.clamp.apply(x * constants["scale"].reshape(along) + constants["shift"].reshape(along)),)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return replace(self, clamp=NO_CLAMP).reference([np.abs(inputs[0])], signless(constants))

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """A depthwise convolution by one weight per channel, with its rounding.

        The factor has a scale for each channel, the summand the product of that and the input's.
        """
        x = centred(site, inputs[0]).astype(np.int64)
        along = self._along(x)
        sums = x * site.constant("scale").astype(np.int64).reshape(along)
        sums = sums + site.constant("shift").astype(np.int64).reshape(along)
        scaled = np.moveaxis(self.scaled(site, np.moveaxis(sums, self.axis + 1, -1)), -1, self.axis + 1)
        return (clamped(scaled + quant_of(site.outputs[0]).zero_point, self.clamp, site.outputs[0]),)

    def scaled(self, site: Site, sums: Ints) -> Ints:
        """Sums [..., index] in steps of the output."""
        if self.once:
            return apply_real_scale(sums, real_scales(site, "scale"))
        return requantization(site, site.constant("scale").size, "scale").apply(sums)

    def _along(self, x: Array) -> list[int]:
        """The shape that aligns a constant with the axis."""
        along = [1] * x.ndim
        along[self.axis + 1] = -1
        return along

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        size = 1
        for n in inputs[0]:
            size *= n
        return size
