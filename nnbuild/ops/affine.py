"""A factor and a summand for every index of one axis: what is left of BatchNormalization at inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect


@dataclass(frozen=True)
class Affine(Attributes):
    """x * scale + shift, both of the size of `axis`."""

    kind: ClassVar[str] = "affine"
    required: ClassVar[tuple[str, ...]] = ("scale", "shift")

    axis: int = 0
    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(0 <= self.axis < len(inputs[0]), f"axis {self.axis} does not exist in {inputs[0]}.")
        size = (inputs[0][self.axis],)
        for role in self.required:
            expect(constants[role] == size, f"its {role} has the shape {constants[role]}, not {size}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        along = [1] * x.ndim
        along[self.axis + 1] = -1
        return (self.clamp.apply(x * constants["scale"].reshape(along) + constants["shift"].reshape(along)),)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        size = 1
        for n in inputs[0]:
            size *= n
        return size
