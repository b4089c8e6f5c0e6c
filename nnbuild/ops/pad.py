"""Padding with zeros or other values."""

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
    """`amounts` are (before, after) for every axis. The padding is `value`, or the `border` if there is one: a value
    for each index of the last axis, which is not padded then."""

    kind: ClassVar[str] = "pad"
    optional: ClassVar[tuple[str, ...]] = ("border",)

    amounts: tuple[Pair, ...] = ()
    value: float = 0.0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(self.amounts) == len(inputs[0]), f"{self.amounts} does not pad each axis of {inputs[0]}.")
        expect(all(min(pair) >= 0 for pair in self.amounts), f"padding by {self.amounts} is negative.")
        if "border" in constants:
            expect(constants["border"] == inputs[0][-1:], f"its border has the shape {constants['border']}.")
            expect(self.amounts[-1] == (0, 0), "the axis of its border is padded.")
        return (tuple(n + sum(pair) for n, pair in zip(inputs[0], self.amounts, strict=True)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The border holds the integer that means `value`; input and output have one scale."""
        border = quantize(self.value, *scale_and_limits(site.outputs[0]))
        return (self._around(inputs[0], site.constant("border") if "border" in site.constants else border),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self._around(inputs[0], constants.get("border", inputs[0].dtype.type(self.value))),)

    def _around(self, x: Array, border: Array) -> Array:
        """Pads with a border of one number, or of one for each index of the last axis."""
        sizes = [n + sum(pair) for n, pair in zip(x.shape[1:], self.amounts, strict=True)]
        whole = np.broadcast_to(border, (len(x), *sizes)).astype(x.dtype)
        inside = tuple(slice(before, before + n) for (before, _), n in zip(self.amounts, x.shape[1:], strict=True))
        whole[(slice(None), *inside)] = x
        return whole

    def rounds(self) -> bool:
        return False
