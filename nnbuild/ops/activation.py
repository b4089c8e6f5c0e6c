"""An elementwise function."""

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
"""The summand of a product before it is clamped."""


@dataclass(frozen=True)
class Activation(Attributes):
    """`function` is a name in `ops.functions.FUNCTIONS`, `parameters` its further arguments.

    `given` selects TFLite's integers where nnbuild's own are more accurate: an 8-bit root, a 16-bit table.
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
        """Functions that multiply a number by a sum close to zero err by a share of the number."""
        if self.function in CANCELLING:
            return (np.abs(inputs[0]),)
        return (np.abs(outputs[0]) + SUMMAND.get(self.function, 0.0),)

    def rule(self, site: Site) -> Rule:
        """The rule of this site's integers."""
        ends = site.inputs[0], site.outputs[0]
        return given_rule(self.function, *ends) if self.given else rule_of(self.function, self.parameters, *ends)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (as_type(self.rule(site).apply(ints(inputs[0])), site.outputs[0]),)
