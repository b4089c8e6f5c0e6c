"""Tensors joined along one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.elementwise import rescale, rescale_multiplier
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect
from nnbuild.ops.integer import clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Concatenate(Attributes):
    kind: ClassVar[str] = "concatenate"

    axis: int = 0
    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs) > 0, "it joins nothing.")
        first = inputs[0]
        expect(0 <= self.axis < len(first), f"axis {self.axis} does not exist in {first}.")
        rest = [shape[: self.axis] + shape[self.axis + 1 :] for shape in inputs]
        expect(all(r == rest[0] for r in rest), f"the inputs {list(inputs)} differ beside axis {self.axis}.")
        joined = sum(shape[self.axis] for shape in inputs)
        return ((*first[: self.axis], joined, *first[self.axis + 1 :]),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self.clamp.apply(np.concatenate(list(inputs), axis=self.axis + 1)),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """An input of another scale than the output's is rescaled, as QUANTIZE does it."""
        out = quant_of(site.outputs[0])
        parts = []
        for tensor, values in zip(site.inputs, inputs, strict=True):
            own = quant_of(tensor)
            scale = rescale_multiplier(own.scale, out.scale)
            parts.append(values if own == out else rescale(values, own.zero_point, out.zero_point, scale))
        return (clamped(np.concatenate(parts, axis=self.axis + 1), self.clamp, site.outputs[0]),)
