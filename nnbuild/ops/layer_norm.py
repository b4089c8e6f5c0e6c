"""Layer normalization over the trailing axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.layer_norm import UNIT, LayerNormScales, layer_norm, layer_norm_scales
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import centred, clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class LayerNorm(Attributes):
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over the last `count` axes.

    Unless `centred` the mean counts as 0: root mean square normalization.
    """

    kind: ClassVar[str] = "layer_norm"
    optional: ClassVar[tuple[str, ...]] = ("scale", "shift")

    count: int = 1
    epsilon: float = 1e-3
    centred: bool = True

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(0 < self.count <= len(inputs[0]), f"{inputs[0]} has no {self.count} axes to normalize.")
        for role, shape in constants.items():
            expect(shape == inputs[0][-self.count :], f"its {role} has the shape {shape}, not the normalized one.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        axes = tuple(range(x.ndim - self.count, x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True) if self.centred else x
        variance = np.square(centred).mean(axis=axes, keepdims=True)
        result = centred / np.sqrt(variance + x.dtype.type(self.epsilon))
        if "scale" in constants:
            result = result * constants["scale"]
        if "shift" in constants:
            result = result + constants["shift"]
        return (result,)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """The mean is subtracted from every value, so both count."""
        x = inputs[0]
        axes = tuple(range(x.ndim - self.count, x.ndim))
        if not self.centred:
            return (np.abs(outputs[0]) + np.abs(constants.get("shift", 0.0)),)
        sizes = np.abs(x) + np.abs(x).mean(axis=axes, keepdims=True)
        sizes = sizes / np.sqrt(x.var(axis=axes, keepdims=True) + self.epsilon)
        return (sizes * np.abs(constants.get("scale", 1.0)) + np.abs(constants.get("shift", 0.0)),)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Our own: see `numeric.layer_norm`. The scale is an int16 constant, the shift an int32 one."""
        x = centred(site, inputs[0]).astype(np.int64)
        factor = site.constant("scale").reshape(-1) if "scale" in site.constants else UNIT
        summand = site.constant("shift").reshape(-1) if "shift" in site.constants else 0
        rows = x.reshape(*x.shape[: x.ndim - self.count], -1)
        zero = quant_of(site.outputs[0]).zero_point
        values = layer_norm(rows, factor, summand, zero, self.scales(site), self.centred)
        return (clamped(values.reshape(x.shape), NO_CLAMP, site.outputs[0]),)

    def scales(self, site: Site) -> LayerNormScales:
        x, out = site.inputs[0], site.outputs[0]
        factor = quant_of(site.constants["scale"]).scale if "scale" in site.constants else 1 / UNIT
        bits = 8 * np.dtype(x.dtype).itemsize
        return layer_norm_scales(bits, quant_of(x).scale, self.epsilon, factor, quant_of(out).scale)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return 2 * prod(inputs[0])
