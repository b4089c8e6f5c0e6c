"""Layer normalization over the trailing axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect


@dataclass(frozen=True)
class LayerNorm(Attributes):
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over the last `count` axes."""

    kind: ClassVar[str] = "layer_norm"
    optional: ClassVar[tuple[str, ...]] = ("scale", "shift")

    count: int = 1
    epsilon: float = 1e-3

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(0 < self.count <= len(inputs[0]), f"{inputs[0]} has no {self.count} axes to normalize.")
        for role, shape in constants.items():
            expect(shape == inputs[0][-self.count :], f"its {role} has the shape {shape}, not the normalized one.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        axes = tuple(range(x.ndim - self.count, x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True)
        variance = np.square(centred).mean(axis=axes, keepdims=True)
        result = centred / np.sqrt(variance + x.dtype.type(self.epsilon))
        if "scale" in constants:
            result = result * constants["scale"]
        if "shift" in constants:
            result = result + constants["shift"]
        return (result,)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return 2 * prod(inputs[0])
