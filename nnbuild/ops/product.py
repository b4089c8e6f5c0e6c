"""The product along the first axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.product import product, product_multiplier
from nnbuild.numeric.rounding import ints
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Product(Attributes):
    """[count, ...] -> [...]. Integers are TFLite's; floats use products of halves."""

    kind: ClassVar[str] = "product"

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) > 1, "it needs an axis beside that of its factors.")
        return (inputs[0][1:],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (inputs[0].prod(axis=1),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        own, out = quant_of(site.inputs[0]), quant_of(site.outputs[0])
        scale = product_multiplier(own.scale, out.scale, inputs[0].shape[1])
        made = product(ints(inputs[0]).swapaxes(0, 1) - own.zero_point, scale) + out.zero_point
        return (clamped(made, NO_CLAMP, site.outputs[0]),)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(inputs[0])
