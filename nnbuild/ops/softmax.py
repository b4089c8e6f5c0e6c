"""Softmax over neighbouring axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.softmax import softmax8, softmax8_constants, softmax16, softmax16_multiplier
from nnbuild.ops.base import Arrays, Attributes, around, expect
from nnbuild.ops.integer import as_type, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Softmax(Attributes):
    """exp(x - max) / sum over `count` axes from `axis` on."""

    kind: ClassVar[str] = "softmax"

    axis: int = 0
    count: int = 1

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.axis >= 0 and self.count > 0 and self.axis + self.count <= len(inputs[0]), "its axes do not exist.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        axes = tuple(range(self.axis + 1, self.axis + 1 + self.count))
        powers = np.exp(inputs[0] - inputs[0].max(axis=axes, keepdims=True))
        return (powers / powers.sum(axis=axes, keepdims=True),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's, along any axes; the output has TFLite's fixed scale, 2**-8 from -128 on or 2**-15."""
        x, out = site.inputs[0], site.outputs[0]
        before, size, after = around(inputs[0].shape[1:], self.axis, self.count)
        rows = inputs[0].reshape(-1, before, size, after).swapaxes(2, 3)
        if x.dtype == "int8":
            values = softmax8(rows, softmax8_constants(quant_of(x).scale))
        else:
            values = softmax16(rows, softmax16_multiplier(quant_of(x).scale))
        return (as_type(values.swapaxes(2, 3).reshape(inputs[0].shape), out),)
