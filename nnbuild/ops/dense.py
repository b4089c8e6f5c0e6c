"""A fully connected layer over the last axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.multiplier import convolution_scales
from nnbuild.numeric.real_scale import IntegerScale, apply_integer_scale, integer_scale
from nnbuild.numeric.rounding import Ints, limits
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect, signless
from nnbuild.ops.device_arithmetic import device_arithmetic_of, scaled_sums
from nnbuild.ops.integer import centred, clamped, exact_sums, gives_floats, in_floats, quant_of, requantization
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Dense(Attributes):
    """[..., in] by kernel [in, out] -> [..., out]."""

    kind: ClassVar[str] = "dense"
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(constants["kernel"]) == 2, f"its kernel has the shape {constants['kernel']}, not two axes.")
        expect(len(inputs[0]) > 0, "it needs at least one axis.")
        depth, out = constants["kernel"]
        expect(inputs[0][-1] == depth, f"its kernel is for {depth} inputs, not {inputs[0][-1]}.")
        return ((*inputs[0][:-1], out),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        result = inputs[0] @ constants["kernel"]
        if "bias" in constants:
            result = result + constants["bias"]
        return (self.clamp.apply(result),)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        (size,) = replace(self, clamp=NO_CLAMP).reference([np.abs(inputs[0])], signless(constants))
        return (self.drifting(size, inputs, constants, outputs[0]),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's: the sum times the real scale, rounded once; here in integers with the same results.

        Words times 16-bit weights, which TFLite does not have, follow the rule of 16-bit convolutions.
        """
        kernel = exact_sums(site.constant("kernel")) - quant_of(site.constants["kernel"]).zero_point
        sums = (centred(site, inputs[0]) @ kernel).astype(np.int64)
        if gives_floats(site):
            return (in_floats(site, sums, self.clamp),)
        if "bias" in site.constants:
            sums = sums + site.constant("bias").astype(np.int64)
        out, spec = site.outputs[0], device_arithmetic_of(site.op)
        if spec is not None:
            return (clamped(scaled_sums(site, sums, spec), self.clamp, out),)
        if not rounds_once(site):
            return (clamped(requantization(site, sums.shape[-1]).apply(sums), self.clamp, out),)
        columns = [apply_integer_scale(sums[..., i], scale) for i, scale in enumerate(self.scales(site))]
        return (clamped(np.stack(columns, axis=-1) + quant_of(out).zero_point, self.clamp, out),)

    def scales(self, site: Site) -> list[IntegerScale]:
        """For each output, the integer scale of its sum, proven for all sums its weights can give."""
        return _scales(site)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * constants["kernel"][0]


def rounds_once(site: Site) -> bool:
    """Whether sums are scaled by TFLite's rule for dense layers, not that of 16-bit convolutions."""
    return site.inputs[0].dtype == "int8" or site.constant("kernel").dtype == np.int8


def sum_bounds(site: Site) -> tuple[Ints, Ints]:
    """The accumulator range of each output, from the weights and the input's type."""
    kernel = site.constants["kernel"]
    weights = kernel.data.astype(np.int64) - quant_of(kernel).zero_point
    x = site.inputs[0]
    low, high = (limit - quant_of(x).zero_point for limit in limits(x.dtype))
    bias = site.constant("bias").astype(np.int64) if "bias" in site.constants else np.int64(0)
    extremes = np.minimum(weights * low, weights * high), np.maximum(weights * low, weights * high)
    return extremes[0].sum(axis=0) + bias, extremes[1].sum(axis=0) + bias


@lru_cache(maxsize=64)
def _scales(site: Site) -> list[IntegerScale]:
    """Cached, since a proof takes longer than a run, and a model with states is run sample by sample."""
    return [integer_scale(*proof) for proof in _proofs(site)]


def _proofs(site: Site) -> Iterator[tuple[float, tuple[int, int], tuple[int, int]]]:
    """For each output the scale, its accumulator range, and the range of relevant results."""
    out, kernel = site.outputs[0], site.constants["kernel"]
    reals = convolution_scales(quant_of(site.inputs[0]).scale, quant_of(kernel).scales, quant_of(out).scale)
    low, high = (limit - quant_of(out).zero_point for limit in limits(out.dtype))
    smallest, largest = sum_bounds(site)
    for i, real in enumerate(np.broadcast_to(reals, (kernel.data.shape[1],))):
        yield float(real), (int(smallest[i]), int(largest[i])), (low - 1, high + 1)
