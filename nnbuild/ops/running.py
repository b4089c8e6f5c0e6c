"""A running average or sum over rows: new rows are added to a sum, leaving rows are subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, around, expect
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Running(Attributes):
    """(sum, leaving rows, new rows, other rows) -> (the function `of` over all `rows` rows, the new sum).

    The other rows belong to this run alone and do not enter the sum. Rows are counted along `axis`.
    """

    kind: ClassVar[str] = "running"

    of: Reduce | Pool2D = field(default_factory=Reduce)
    axis: int = 0
    rows: int = 1

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        held, leaving, new, *others = inputs
        expect(leaving == new, f"rows of the shape {leaving} leave, and {new} come in.")
        same = all(len(other) == len(new) and self._all(other) == self._all(new) for other in others)
        expect(same, f"{others} are no rows of those of {new}.")
        (made,) = self.of.shapes([self._all(new)], {})
        expect(held == made, f"the sum has the shape {held}, not {made}.")
        return made, made

    def _all(self, rows: Shape) -> Shape:
        return (*rows[: self.axis], self.rows, *rows[self.axis + 1 :])

    def sizes(self, rows: Shape) -> tuple[int, int]:
        """The number of values that are reduced to one, and the number of results."""
        first, count = (self.of.axis, self.of.count) if isinstance(self.of, Reduce) else (0, 2)
        _, size, after = around(rows, first, count)
        return size, after

    def whole(self, site: Site) -> Site:
        """The operation over all rows at once."""
        rows = site.inputs[2]
        tensor = replace(rows, shape=self._all(rows.shape))
        return Site(replace(site.op, attributes=self.of), (tensor,), site.outputs[:1], {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        raise NotImplementedError("floats have no running sums: the order of additions would change")

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        held, leaving, new, *others = inputs

        def added(rows: Array) -> Array:
            size, after = self.sizes(rows.shape[1:])
            sums: Array = rows.astype(np.int64).reshape(-1, size, after).sum(axis=1)
            return sums.reshape(-1, *held.shape[1:])

        after = held + added(new) - added(leaving)
        result = self.of.of_sums(self.whole(site), after + sum(added(rows) for rows in others))
        return result, after.astype(np.int32)
