"""A sliding window: the oldest rows leave at one end, new ones enter at the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Shift(Attributes):
    """(rows, new rows) -> as many rows, of which the last are the new ones; rows are counted along `axis`.

    In all but one of `turns` runs, the rows are in place already, with room for the new ones behind them.
    """

    kind: ClassVar[str] = "shift"

    axis: int = 0
    turns: int = 1

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        rows, new = inputs
        expect(len(rows) == len(new) and 0 <= self.axis < len(rows), f"{new} are no rows of {rows}.")
        same = rows[: self.axis] == new[: self.axis] and rows[self.axis + 1 :] == new[self.axis + 1 :]
        expect(same and new[self.axis] <= rows[self.axis], f"{new} are no rows of {rows} along axis {self.axis}.")
        return (rows,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        rows, new = inputs
        kept = np.take(rows, range(new.shape[self.axis + 1], rows.shape[self.axis + 1]), axis=self.axis + 1)
        return (np.concatenate([kept, new], axis=self.axis + 1),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: all have one scale."""
        return self.reference(inputs, {})
