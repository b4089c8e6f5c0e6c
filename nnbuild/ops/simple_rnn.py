"""The plain recurrent layer: one activation over input and hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.base import Arrays
from nnbuild.ops.recurrent import Recurrent, with_bias
from nnbuild.ops.recurrent_rules import Rules, held, shifted


@dataclass(frozen=True)
class SimpleRNN(Recurrent):
    kind: ClassVar[str] = "simple_rnn"
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    value_gate: ClassVar[int] = 0

    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        activation, _ = self.functions()
        return (activation(with_bias(x @ constants["kernel"] + states[0] @ constants["recurrent"], constants)),)

    def integer_cell(self, rules: Rules, x: Array, states: tuple[Ints, ...]) -> tuple[Ints, ...]:
        shown = rules.value.apply(rules.of_input.part(x) + rules.of_state.part(states[0]))
        return (held(shifted(shown, rules.value.power - rules.hidden_power)),)
