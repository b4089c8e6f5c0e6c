"""Two-dimensional convolution, grouped and dilated; one-dimensional ones have a single row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Pair, expect
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.windows import NO_PADDING, Padding, sliding, windows_along


@dataclass(frozen=True)
class Conv2D(Convolution):
    """[h, w, in] by kernel [kh, kw, in / groups, out] -> [rows, columns, out]."""

    kind: ClassVar[str] = "conv2d"

    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = NO_PADDING
    groups: int = 1

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

    def sums(self, x: Array, constants: Arrays) -> Array:
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
