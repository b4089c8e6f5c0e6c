"""Part of a tensor: a first index, a step and a count for every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Slice(Attributes):
    """Output index i of an axis is input index begin + i * step; a negative step walks backwards."""

    kind: ClassVar[str] = "slice"

    begins: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        ranks = {len(inputs[0]), len(self.begins), len(self.steps), len(self.counts)}
        expect(len(ranks) == 1, f"its ranges do not name each axis of {inputs[0]}.")
        for n, begin, step, count in zip(inputs[0], self.begins, self.steps, self.counts, strict=True):
            last = begin + (count - 1) * step
            expect(
                count > 0 and 0 <= begin < n and 0 <= last < n, f"it leaves nothing of, or reaches past, {inputs[0]}."
            )
        return (self.counts,)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        picks = [slice(None)]
        for begin, step, count in zip(self.begins, self.steps, self.counts, strict=True):
            end = begin + count * step
            picks.append(slice(begin, end if end >= 0 else None, step))
        return (inputs[0][tuple(picks)],)

    def rounds(self) -> bool:
        return False
