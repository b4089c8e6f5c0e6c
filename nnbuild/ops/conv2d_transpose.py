"""Transposed convolution: every input is spread over the output through the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Pair, expect
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.windows import spread


@dataclass(frozen=True)
class Conv2DTranspose(Convolution):
    """[h, w, in] by kernel [kh, kw, out, in] -> [*size, out].

    Input (y, x) times kernel tap (i, j) is added to output (y * stride + i * dilation - crop, ...); contributions
    outside `size` are dropped.
    """

    kind: ClassVar[str] = "conv2d_transpose"

    size: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    crop: Pair = (0, 0)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 3, f"a transposed convolution needs [height, width, channels], not {inputs[0]}.")
        expect(len(constants["kernel"]) == 4, f"its kernel has the shape {constants['kernel']}, not four axes.")
        _, _, out, channels = constants["kernel"]
        expect(inputs[0][2] == channels, f"its kernel is for {channels} channels, not {inputs[0][2]}.")
        expect(min(self.size) > 0, f"its output size {self.size} is empty.")
        return ((*self.size, out),)

    def sums(self, x: Array, constants: Arrays) -> Array:
        kernel = constants["kernel"]
        kh, kw, out, _ = kernel.shape
        batch, height, width, _ = x.shape
        full = [
            max((n - 1) * s + spread(k, d), c + size)
            for n, k, s, d, c, size in zip(
                (height, width), (kh, kw), self.strides, self.dilation, self.crop, self.size, strict=True
            )
        ]
        whole = np.zeros((batch, full[0], full[1], out), x.dtype)
        for i in range(kh):
            for j in range(kw):
                top, left = i * self.dilation[0], j * self.dilation[1]
                rows = slice(top, top + (height - 1) * self.strides[0] + 1, self.strides[0])
                columns = slice(left, left + (width - 1) * self.strides[1] + 1, self.strides[1])
                whole[:, rows, columns] += x @ kernel[i, j].T
        (top, left), (rows_out, columns_out) = self.crop, self.size
        result = whole[:, top : top + rows_out, left : left + columns_out]
        return result + constants["bias"] if "bias" in constants else result

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(inputs[0][:2]) * prod(constants["kernel"])
