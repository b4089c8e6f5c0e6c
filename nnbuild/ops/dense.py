"""A fully connected layer over the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, expect


@dataclass(frozen=True)
class Dense(Attributes):
    """[..., in] by kernel [in, out] -> [..., out]."""

    kind: ClassVar[str] = "dense"
    required: ClassVar[tuple[str, ...]] = ("kernel",)
    optional: ClassVar[tuple[str, ...]] = ("bias",)

    clamp: Clamp = NO_CLAMP

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(constants["kernel"]) == 2, f"its kernel has the shape {constants['kernel']}, not two axes.")
        expect(len(inputs[0]) > 0, "it needs at least one axis.")
        depth, out = constants["kernel"]
        expect(inputs[0][-1] == depth, f"its kernel is for {depth} inputs, not {inputs[0][-1]}.")
        return ((*inputs[0][:-1], out),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        result = inputs[0] @ constants["kernel"]
        if "bias" in constants:
            result = result + constants["bias"]
        return (self.clamp.apply(result),)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        return prod(outputs[0]) * constants["kernel"][0]
