"""TFLite's 8-bit SVDF: feature filters, and time filters over their results of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric import svdf
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, expect
from nnbuild.ops.integer import as_type, centred, clamped, quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Svdf(Attributes):
    """[features] and a state [filters, memory] -> [units], and the state with one more column, the newest last.

    A unit sums `rank` filters. kernel [features, filters] and times [filters, memory], bias [units]. It exists in
    integers only; in floats it becomes a dense layer, products and a sum.
    """

    kind: ClassVar[str] = "svdf"
    required: ClassVar[tuple[str, ...]] = ("kernel", "times", "bias")

    rank: int

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs) == 2 and len(inputs[0]) == 1, "it needs [features] and a state.")
        filters, memory = constants["times"]
        expect(self.rank > 0 and filters % self.rank == 0, f"{filters} filters are no multiple of {self.rank}.")
        wanted = {"kernel": (inputs[0][0], filters), "times": inputs[1], "bias": (filters // self.rank,)}
        for role, shape in constants.items():
            expect(shape == wanted[role], f"its {role} has the shape {shape}, not {wanted[role]}.")
        return ((filters // self.rank,), (filters, memory))

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        raise NotImplementedError(f"{self.kind} has no floating-point form")

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        kernel, times, bias = (site.constant(role) for role in self.required)
        to_state, to_output = self.scales(site)
        newest = svdf.column(centred(site, inputs[0]), kernel, to_state)
        state = np.concatenate([inputs[1][:, :, 1:], newest[:, :, None]], axis=2)
        values = svdf.result(state, times, bias, self.rank, to_output) + quant_of(site.outputs[0]).zero_point
        return clamped(values, NO_CLAMP, site.outputs[0]), as_type(state, site.outputs[1])

    def scales(self, site: Site) -> tuple[Multiplier, Multiplier]:
        """The scales from products of features to the state, and from products of the state to the output."""
        x, state, out = (quant_of(each).scale for each in (site.inputs[0], site.inputs[1], site.outputs[0]))
        kernel, times = (quant_of(site.constants[role]).scale for role in ("kernel", "times"))
        return svdf.scale_between(x, kernel, state), svdf.scale_between(state, times, out)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(constants["kernel"]) + prod(constants["times"])
