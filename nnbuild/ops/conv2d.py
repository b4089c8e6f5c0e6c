"""Two-dimensional convolution, grouped and dilated; one-dimensional ones come as a single row."""

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
class Conv2D(Attributes):
    """[h, w, in] by kernel [kh, kw, in / groups, out] -> [rows, columns, out]."""

    kind: ClassVar[str] = "conv2d"
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = NO_PADDING
    groups: int = 1
    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"a convolution needs [height, width, channels], not {inputs[0]}.")
        expect(len(constants["kernel"]) == 4, f"its kernel has the shape {constants['kernel']}, not four axes.")
        kh, kw, depth, out = constants["kernel"]
        channels = inputs[0][2]
        expect(channels == depth * self.groups, f"its kernel is for {depth * self.groups} channels, not {channels}.")
        expect(out % self.groups == 0, f"{out} filters do not divide into {self.groups} groups.")
        return ((*self._places(inputs[0], (kh, kw)), out),)

    def _places(self, shape: Shape, kernel: Pair) -> Shape:
        return tuple(
            windows_along(shape[i], kernel[i], self.strides[i], self.dilation[i], self.padding[i]) for i in (0, 1)
        )

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
        kh, kw, depth, out = kernel.shape
        windows = sliding(x, (kh, kw), self.strides, self.dilation, self.padding, 0.0)
        share = out // self.groups
        parts = []
        for group in range(self.groups):
            taken = windows[:, :, :, group * depth : (group + 1) * depth]
            weights = kernel[..., group * share : (group + 1) * share]
            parts.append(np.tensordot(taken, weights, axes=((4, 5, 3), (0, 1, 2))))
        result = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        return result + constants["bias"] if "bias" in constants else result

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * prod(constants["kernel"][:3])
