"""What the three convolutions have in common: weighted sums, brought to the output by one rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, signless
from nnbuild.ops.integer import centred, clamped, exact_sums, quant_of, requantization
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Convolution(Attributes):
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    clamp: Clamp = field(default=NO_CLAMP, kw_only=True)

    @abstractmethod
    def sums(self, x: Array, constants: Arrays) -> Array:
        """The convolution with its bias, before any activation."""

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self.clamp.apply(self.sums(inputs[0], constants)),)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.sums(np.abs(inputs[0]), signless(constants)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's: a 32-bit sum rounded twice, or a 64-bit one rounded once with a multiplier of 16 bits."""
        weights = {role: exact_sums(constant.data) for role, constant in site.constants.items()}
        sums = self.sums(centred(site, inputs[0]), weights).astype(np.int64)
        out = site.outputs[0]
        scaled = requantization(site, sums.shape[-1]).apply(sums) + quant_of(out).zero_point
        return (clamped(scaled, self.clamp, out),)
