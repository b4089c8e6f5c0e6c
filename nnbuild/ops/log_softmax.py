"""The logarithm of softmax over the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.softmax import log_softmax8, softmax8_constants
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.integer import as_type, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class LogSoftmax(Attributes):
    """x - max - log(sum of exp(x - max)) over the last axis. Integers are TFLite's; floats use a formula of others."""

    kind: ClassVar[str] = "log_softmax"

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) > 0, "it needs an axis.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        below = inputs[0] - inputs[0].max(axis=-1, keepdims=True)
        return (below - np.log(np.exp(below).sum(axis=-1, keepdims=True)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """TFLite's 8-bit rule; the output has its fixed scale, 2**-4 up to 127."""
        constants = softmax8_constants(quant_of(site.inputs[0]).scale)
        return (as_type(log_softmax8(inputs[0], constants), site.outputs[0]),)
