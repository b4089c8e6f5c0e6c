"""Permutes the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Transpose(Attributes):
    """Output axis i is input axis order[i]."""

    kind: ClassVar[str] = "transpose"

    order: tuple[int, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(sorted(self.order) == list(range(len(inputs[0]))), f"{self.order} does not order the axes {inputs[0]}.")
        return (tuple(inputs[0][axis] for axis in self.order),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0].transpose(0, *(axis + 1 for axis in self.order)),)

    def rounds(self) -> bool:
        return False
