"""L2 normalization along the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.unit_length import unit_length
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import centred, clamped, quant_of
from nnbuild.ops.site import Site

TINY = 1e-12


@dataclass(frozen=True)
class UnitLength(Attributes):
    """x / sqrt(sum of squares) over the last axis. Integers are TFLite's; floats use a layer normalization."""

    kind: ClassVar[str] = "unit_length"

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) > 0, "it needs an axis.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        squares = np.square(inputs[0]).sum(axis=-1, keepdims=True)
        return (inputs[0] / np.sqrt(np.maximum(squares, inputs[0].dtype.type(TINY))),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        values = unit_length(centred(site, inputs[0])) + quant_of(site.outputs[0]).zero_point
        return (clamped(values, NO_CLAMP, site.outputs[0]),)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return 2 * prod(inputs[0])
