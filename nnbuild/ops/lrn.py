"""Local response normalization across channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect


@dataclass(frozen=True)
class LRN(Attributes):
    """x / (bias + alpha * sum of squares within `radius` channels) ** beta."""

    kind: ClassVar[str] = "lrn"

    radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) > 0 and self.radius >= 0, "it needs channels and a radius of at least 0.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        kind = x.dtype.type
        around = [(0, 0)] * (x.ndim - 1) + [(self.radius, self.radius)]
        squares = np.pad(np.square(x), around)
        width = 2 * self.radius + 1
        sums = np.lib.stride_tricks.sliding_window_view(squares, width, axis=-1).sum(axis=-1)
        return (x / (kind(self.bias) + kind(self.alpha) * sums) ** kind(self.beta),)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(inputs[0]) * (2 * self.radius + 1)
