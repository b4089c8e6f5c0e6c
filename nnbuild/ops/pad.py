"""Zeros around a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.edge import quantize
from nnbuild.ops.base import Arrays, Attributes, Pair, expect
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Pad(Attributes):
    """`amounts` says (before, after) for every axis; `value` is what is put there."""

    kind: ClassVar[str] = "pad"

    amounts: tuple[Pair, ...] = ()
    value: float = 0.0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(self.amounts) == len(inputs[0]), f"{self.amounts} does not pad each axis of {inputs[0]}.")
        expect(all(min(pair) >= 0 for pair in self.amounts), f"padding by {self.amounts} is negative.")
        return (tuple(n + sum(pair) for n, pair in zip(inputs[0], self.amounts, strict=True)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The border holds the integer that means `value`; input and output have one scale."""
        border = quantize(self.value, *scale_and_limits(site.outputs[0]))
        return (np.pad(inputs[0], ((0, 0), *self.amounts), constant_values=border),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        return (np.pad(x, ((0, 0), *self.amounts), constant_values=x.dtype.type(self.value)),)

    def rounds(self) -> bool:
        return False
