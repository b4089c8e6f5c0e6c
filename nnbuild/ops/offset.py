"""Adds a number: in a quantized graph the same integers, read with another zero point."""

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
    """x + summand; nothing moves, as with any reshape."""

    kind: ClassVar[str] = "offset"

    summand: float = 0.0

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0] + inputs[0].dtype.type(self.summand),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def rounds(self) -> bool:
        return True
