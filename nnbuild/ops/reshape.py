"""The same elements in the same order under another shape: never any work at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Reshape(Attributes):
    kind: ClassVar[str] = "reshape"

    shape: Shape = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(prod(inputs[0]) == prod(self.shape), f"{inputs[0]} cannot be seen as {self.shape}.")
        return (self.shape,)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0].reshape(inputs[0].shape[0], *self.shape),)

    def rounds(self) -> bool:
        return False
