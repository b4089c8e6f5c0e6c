"""Softmax over neighbouring axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect


@dataclass(frozen=True)
class Softmax(Attributes):
    """exp(x - max) / sum over `count` axes from `axis` on."""

    kind: ClassVar[str] = "softmax"

    axis: int = 0
    count: int = 1

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.axis >= 0 and self.count > 0 and self.axis + self.count <= len(inputs[0]), "its axes do not exist.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        axes = tuple(range(self.axis + 1, self.axis + 1 + self.count))
        powers = np.exp(inputs[0] - inputs[0].max(axis=axes, keepdims=True))
        return (powers / powers.sum(axis=axes, keepdims=True),)
