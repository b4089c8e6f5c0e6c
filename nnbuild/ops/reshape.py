"""The same elements in the same order in another shape: no work at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Reshape(Attributes):
    kind: ClassVar[str] = "reshape"

    shape: Shape = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(prod(inputs[0]) == prod(self.shape), f"{inputs[0]} cannot be reshaped to {self.shape}.")
        return (self.shape,)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0].reshape(inputs[0].shape[0], *self.shape),)

    def rounds(self) -> bool:
        return False


@dataclass(frozen=True)
class Part(Reshape):
    """The elements from `begin` on, as many as the shape has, read in place."""

    begin: int = 0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(0 <= self.begin <= prod(inputs[0]) - prod(self.shape), f"it reaches past {inputs[0]}.")
        return (self.shape,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        flat = inputs[0].reshape(len(inputs[0]), -1)
        return (flat[:, self.begin : self.begin + prod(self.shape)].reshape(-1, *self.shape),)


@dataclass(frozen=True)
class Join(Reshape):
    """Several tensors, consecutive, each written in place by its producer."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(sum(map(prod, inputs)) == prod(self.shape), f"{list(inputs)} do not make {self.shape}.")
        return (self.shape,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        flat = np.concatenate([each.reshape(len(each), -1) for each in inputs], axis=1)
        return (flat.reshape(-1, *self.shape),)
