"""The index of the largest or smallest value along an axis; of equal values the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Arg(Attributes):
    """`function` is max or min; the axis disappears."""

    kind: ClassVar[str] = "arg"

    function: str = "max"
    axis: int = 0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in ("max", "min"), f"there is no place of the {self.function!r}.")
        expect(0 <= self.axis < len(inputs[0]), f"axis {self.axis} does not exist in {inputs[0]}.")
        return ((*inputs[0][: self.axis], *inputs[0][self.axis + 1 :]) or (1,),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        found = (np.argmax if self.function == "max" else np.argmin)(inputs[0], self.axis + 1)
        return (found.reshape(*found.shape[:1], *(found.shape[1:] or (1,))).astype(np.int32),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.reference(inputs, {})
