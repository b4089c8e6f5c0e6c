"""Depthwise convolution: every channel is filtered separately, into `multiplier` channels."""

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
class DepthwiseConv2D(Convolution):
    """[h, w, channels] by kernel [kh, kw, channels, multiplier] -> [rows, columns, channels * multiplier]."""

    kind: ClassVar[str] = "depthwise_conv2d"

    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = NO_PADDING

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"a depthwise convolution needs [height, width, channels], not {inputs[0]}.")
        expect(len(constants["kernel"]) == 4, f"its kernel has the shape {constants['kernel']}, not four axes.")
        *kernel, channels, multiplier = constants["kernel"]
        expect(inputs[0][2] == channels, f"its kernel is for {channels} channels, not {inputs[0][2]}.")
        places = tuple(
            windows_along(inputs[0][i], kernel[i], self.strides[i], self.dilation[i], self.padding[i]) for i in (0, 1)
        )
        return ((*places, channels * multiplier),)

    def sums(self, x: Array, constants: Arrays) -> Array:
        kernel = constants["kernel"]
        windows = sliding(x, kernel.shape[:2], self.strides, self.dilation, self.padding, 0.0)
        result: Array = np.einsum("nyxcij,ijcm->nyxcm", windows, kernel)
        result = result.reshape(*result.shape[:3], -1)
        return result + constants["bias"] if "bias" in constants else result

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * prod(constants["kernel"][:2])
