"""A function applied to every element by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import ints
from nnbuild.ops.activation_rules import Rule, given_rule, rule_of
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.functions import FUNCTIONS, apply
from nnbuild.ops.integer import as_type
from nnbuild.ops.site import Site

EXACT = {"linear", "absolute", "negative", "floor", "ceil", "round", "clamp"}
CANCELLING = {"gelu", "gelu_tanh", "hard_swish"}
SUMMAND = {"hard_sigmoid": 0.5, "hard_sigmoid_fifth": 0.5}
"""What a product is added to before the sum is bounded."""


@dataclass(frozen=True)
class Activation(Attributes):
    """`function` is a name of `ops.functions.FUNCTIONS`, `parameters` its further arguments.

    `given` is whether integers are TFLite's where nnbuild's own are nearer: a root of 8 bits, a table of 16.
    """

    kind: ClassVar[str] = "activation"

    function: str = "linear"
    parameters: tuple[float, ...] = ()
    given: bool = False

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no function named {self.function!r}.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return (apply(self.function, self.parameters, inputs[0]),)

    def rounds(self) -> bool:
        return self.function not in EXACT

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """Functions that multiply a number by a sum which may nearly vanish err by a share of the number."""
        if self.function in CANCELLING:
            return (np.abs(inputs[0]),)
        return (np.abs(outputs[0]) + SUMMAND.get(self.function, 0.0),)

    def rule(self, site: Site) -> Rule:
        """How this site's integers are computed."""
        ends = site.inputs[0], site.outputs[0]
        return given_rule(self.function, *ends) if self.given else rule_of(self.function, self.parameters, *ends)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (as_type(self.rule(site).apply(ints(inputs[0])), site.outputs[0]),)
