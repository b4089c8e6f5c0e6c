"""The largest values of the last axis in descending order, and their indices; of equal values the first comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class TopK(Attributes):
    """[..., n] -> the values [..., count], their indices [..., count]."""

    kind: ClassVar[str] = "top_k"

    count: int = 1

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        size = inputs[0][-1]
        expect(0 < self.count <= size, f"it takes the largest {self.count} of {size}.")
        return ((*inputs[0][:-1], self.count),) * 2

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        wide = x if x.dtype.kind == "f" else x.astype(np.int64)
        places = np.argsort(-wide, axis=-1, kind="stable")[..., : self.count]
        return np.take_along_axis(x, places, -1), places.astype(np.int32)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Values are copied."""
        return self.reference(inputs, {})
