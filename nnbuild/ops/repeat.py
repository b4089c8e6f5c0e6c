"""Repeats every index of an axis: nearest upsampling, RepeatVector, broadcasting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Repeat(Attributes):
    """Output index i of an axis is input index i // times."""

    kind: ClassVar[str] = "repeat"

    times: tuple[int, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        fits = len(self.times) == len(inputs[0]) and all(t > 0 for t in self.times)
        expect(fits, f"{self.times} does not say how often to repeat each axis of {inputs[0]}.")
        return (tuple(n * t for n, t in zip(inputs[0], self.times, strict=True)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        for axis, times in enumerate(self.times):
            if times > 1:
                x = x.repeat(times, axis=axis + 1)
        return (x,)

    def rounds(self) -> bool:
        return False
