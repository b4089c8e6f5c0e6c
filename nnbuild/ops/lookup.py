"""Any function of one byte: what a quantized graph computes in several steps, joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import ints
from nnbuild.numeric.tables import lookup8
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Lookup(Attributes):
    """`entries` are the results for -128 to 127."""

    kind: ClassVar[str] = "lookup"

    entries: tuple[int, ...]

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(self.entries) == 256, f"it has {len(self.entries)} entries instead of 256.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        raise TypeError("a look-up is a function of bytes, not of floats")

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (as_type(lookup8(ints(inputs[0]), np.array(self.entries)), site.outputs[0]),)
