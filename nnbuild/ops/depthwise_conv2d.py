"""Depthwise convolution: every channel is filtered by itself, into `multiplier` channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, Pair, expect
from nnbuild.ops.integer import centred, clamped, exact_sums, quant_of, requantization
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING, Padding, sliding, windows_along


@dataclass(frozen=True)
class DepthwiseConv2D(Attributes):
    """[h, w, channels] by kernel [kh, kw, channels, multiplier] -> [rows, columns, channels * multiplier]."""

    kind: ClassVar[str] = "depthwise_conv2d"
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = NO_PADDING
    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"a depthwise convolution needs [height, width, channels], not {inputs[0]}.")
        expect(len(constants["kernel"]) == 4, f"its kernel has the shape {constants['kernel']}, not four axes.")
        *kernel, channels, multiplier = constants["kernel"]
        expect(inputs[0][2] == channels, f"its kernel is for {channels} channels, not {inputs[0][2]}.")
        places = tuple(
            windows_along(inputs[0][i], kernel[i], self.strides[i], self.dilation[i], self.padding[i]) for i in (0, 1)
        )
        return ((*places, channels * multiplier),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (self.clamp.apply(self.sums(inputs[0], constants)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's: a 32-bit sum rounded twice, or a 64-bit one rounded once with a multiplier of 16 bits."""
        weights = {role: exact_sums(constant.data) for role, constant in site.constants.items()}
        sums = self.sums(centred(site, inputs[0]), weights).astype(np.int64)
        out = site.outputs[0]
        scaled = requantization(site, sums.shape[-1]).apply(sums) + quant_of(out).zero_point
        return (clamped(scaled, self.clamp, out),)

    def sums(self, x: Array, constants: Arrays) -> Array:
        """The convolution with its bias, before any activation."""
        kernel = constants["kernel"]
        windows = sliding(x, kernel.shape[:2], self.strides, self.dilation, self.padding, 0.0)
        result: Array = np.einsum("nyxcij,ijcm->nyxcm", windows, kernel)
        result = result.reshape(*result.shape[:3], -1)
        return result + constants["bias"] if "bias" in constants else result

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * prod(constants["kernel"][:2])
