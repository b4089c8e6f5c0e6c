"""Rows of a table, or slices of a tensor, selected by indices at run time: embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Gather(Attributes):
    """Reads (x, indices), or indices alone where x is the constant `table`; `axis` is the indexed axis.

    An index outside the axis is clamped to it, so that nothing is read out of bounds.
    """

    kind: ClassVar[str] = "gather"
    optional: ClassVar[tuple[str, ...]] = ("table",)

    axis: int = 0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs) + len(constants) == 2, "it needs a table and indices.")
        x, indices = (constants["table"], inputs[0]) if constants else (inputs[0], inputs[1])
        expect(0 <= self.axis < len(x), f"axis {self.axis} does not exist in a table of {len(x)} axes.")
        expect(min(x) > 0, "its table is empty.")
        return ((*x[: self.axis], *indices, *x[self.axis + 1 :]) or (1,),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        (*tables, indices) = inputs
        rows = [constants["table"]] * len(indices) if "table" in constants else list(tables[0])
        places = [np.clip(chosen, 0, x.shape[self.axis] - 1) for x, chosen in zip(rows, indices, strict=True)]
        found = [x.take(place, self.axis) for x, place in zip(rows, places, strict=True)]
        return (np.stack([f.reshape(f.shape or (1,)) for f in found]),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Elements are copied: table and output have one format."""
        return self.reference(inputs, {role: constant.data for role, constant in site.constants.items()})
