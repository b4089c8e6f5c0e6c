"""A function applied to every element by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.functions import FUNCTIONS, apply


@dataclass(frozen=True)
class Activation(Attributes):
    """`function` is a name of `ops.functions.FUNCTIONS`, `parameters` its further arguments."""

    kind: ClassVar[str] = "activation"

    function: str = "linear"
    parameters: tuple[float, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no function named {self.function!r}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (apply(self.function, self.parameters, inputs[0]),)
