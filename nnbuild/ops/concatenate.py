"""Concatenation along one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape, Tensor
from nnbuild.numeric.elementwise import rescale, rescale_multiplier
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect
from nnbuild.ops.integer import clamped, quant_of, rescaled_once
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Concatenate(Attributes):
    kind: ClassVar[str] = "concatenate"

    axis: int = 0
    clamp: Clamp = NO_CLAMP
    once: bool = False
    """Whether inputs with another scale than the output are rounded once, as in ONNX, rather than twice."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs) > 0, "it joins nothing.")
        first = inputs[0]
        expect(0 <= self.axis < len(first), f"axis {self.axis} does not exist in {first}.")
        rest = [shape[: self.axis] + shape[self.axis + 1 :] for shape in inputs]
        alike = all(len(shape) == len(first) for shape in inputs) and all(r == rest[0] for r in rest)
        expect(alike, f"the inputs {list(inputs)} differ beside axis {self.axis}.")
        joined = sum(shape[self.axis] for shape in inputs)
        return ((*first[: self.axis], joined, *first[self.axis + 1 :]),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self.clamp.apply(np.concatenate(list(inputs), axis=self.axis + 1)),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        parts = [self.rescaled(tensor, site.outputs[0], x) for tensor, x in zip(site.inputs, inputs, strict=True)]
        return (clamped(np.concatenate(parts, axis=self.axis + 1), self.clamp, site.outputs[0]),)

    def rescaled(self, x: Tensor, out: Tensor, values: Array) -> Ints:
        """Rescales an input with another scale than the output, like QUANTIZE."""
        own, target = quant_of(x), quant_of(out)
        if own == target:
            return ints(values)
        if self.once:
            return rescaled_once(values, x, out)
        scale = rescale_multiplier(own.scale, target.scale)
        return rescale(values, own.zero_point, target.zero_point, scale)
