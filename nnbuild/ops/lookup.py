"""Any function of one byte: what a quantized graph computes in several steps, joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Quant, Shape
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.rounding import INT8, ints
from nnbuild.numeric.tables import lookup8
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site

SIZE = 256


@dataclass(frozen=True)
class Lookup(Attributes):
    """`entries` are the results for -128 to 127."""

    kind: ClassVar[str] = "lookup"

    entries: tuple[int, ...]

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(self.entries) == SIZE, f"it has {len(self.entries)} entries instead of {SIZE}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        raise TypeError("a look-up is a function of bytes, not of floats")

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (as_type(lookup8(ints(inputs[0]), np.array(self.entries)), site.outputs[0]),)


def between_conversions(attributes: Attributes, source: Quant, target: Quant, constants: Arrays) -> Lookup:
    """A function of single floats between a DequantizeLinear and a QuantizeLinear, as ONNX defines these: in single
    precision, halves to even. What is no number becomes 0."""
    numbers = dequantize(np.arange(INT8[0], INT8[1] + 1)[:, None], source.scale, source.zero_point)
    with np.errstate(all="ignore"):
        (results,) = attributes.reference([numbers], {role: values.reshape(1) for role, values in constants.items()})
        steps = np.nan_to_num(results.astype(np.float32) / np.float32(target.scale)).astype(np.float64)
    return Lookup(tuple(map(int, np.clip(np.rint(steps) + target.zero_point, *INT8).reshape(-1))))
