"""A constant tensor: class tokens, initial states, positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Known(Attributes):
    """The constant `values`. Its input is not read, but gives it a place in the order."""

    kind: ClassVar[str] = "known"
    unread: ClassVar[bool] = True
    required: ClassVar[tuple[str, ...]] = ("values",)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        return (constants["values"],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        values = constants["values"]
        return (np.broadcast_to(values, (len(inputs[0]), *values.shape)).copy(),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The constant has the output's format."""
        return self.reference(inputs, {"values": site.constant("values")})
