"""A leaky ReLU whose slope is learnt, per element or shared along axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect


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
