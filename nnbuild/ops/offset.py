"""Multiplies by a number and adds another: in a quantized graph the same integers, read in another format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array
from nnbuild.ops.base import Arrays
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Offset(Reshape):
    """x * factor + summand; nothing moves, as with any reshape."""

    kind: ClassVar[str] = "offset"

    summand: float = 0.0
    factor: float = 1.0

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        number = inputs[0].dtype.type
        return (inputs[0] * number(self.factor) + number(self.summand),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def rounds(self) -> bool:
        return True
