"""The common part of the three convolutions: weighted sums and their requantization."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.real_scale import apply_real_scale
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, signless
from nnbuild.ops.device_arithmetic import device_arithmetic_of, scaled_sums
from nnbuild.ops.integer import (
    centred,
    clamped,
    exact_sums,
    gives_floats,
    in_floats,
    quant_of,
    real_scales,
    requantization,
)
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Convolution(Attributes):
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    clamp: Clamp = field(default=NO_CLAMP, kw_only=True)
    once: bool = field(default=False, kw_only=True)
    """Whether sums times the real scale are rounded once, as in ONNX. TFLite rounds twice in 8 bits, and scales 16 bits
    by 16-bit multipliers."""

    @abstractmethod
    def sums(self, x: Array, constants: Arrays) -> Array:
        """The convolution with its bias, before any activation."""

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self.clamp.apply(self.sums(inputs[0], constants)),)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        size = self.sums(np.abs(inputs[0]), signless(constants))
        return (self.drifting(size, inputs, constants, outputs[0]),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's: a 32-bit sum rounded twice, or a 64-bit one rounded once with a 16-bit multiplier. Or the sum times
        the real scale, rounded once."""
        weights = {role: exact_sums(constant.data) for role, constant in site.constants.items()}
        if gives_floats(site):
            sums = self.sums(centred(site, inputs[0]), {"kernel": weights["kernel"]})
            return (in_floats(site, sums.astype(np.int64), self.clamp),)
        sums = self.sums(centred(site, inputs[0]), weights).astype(np.int64)
        out, spec = site.outputs[0], device_arithmetic_of(site.op)
        if spec is not None:
            return (clamped(scaled_sums(site, sums, spec), self.clamp, out),)
        if self.once:
            scales = np.broadcast_to(real_scales(site), sums.shape[-1:])
            scaled = np.stack([apply_real_scale(sums[..., i], float(s)) for i, s in enumerate(scales)], axis=-1)
        else:
            scaled = requantization(site, sums.shape[-1]).apply(sums)
        scaled = scaled + quant_of(out).zero_point
        return (clamped(scaled, self.clamp, out),)
