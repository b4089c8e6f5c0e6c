"""Long short-term memory; the gates are in Keras' order: input, forget, candidate, output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, Ints
from nnbuild.ops.base import Arrays
from nnbuild.ops.recurrent import Recurrent, with_bias
from nnbuild.ops.recurrent_rules import Rules, held, shifted


@dataclass(frozen=True)
class LSTM(Recurrent):
    """States: hidden, cell."""

    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2
    value_gate: ClassVar[int] = 2

    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        hidden, memory = states
        activation, gate = self.functions()
        z = with_bias(x @ constants["kernel"] + hidden @ constants["recurrent"], constants)
        let_in, forget, candidate, let_out = np.split(z, 4, axis=-1)
        memory = gate(forget) * memory + gate(let_in) * activation(candidate)
        return gate(let_out) * activation(memory), memory

    def integer_cell(self, rules: Rules, x: Array, states: tuple[Ints, ...]) -> tuple[Ints, ...]:
        hidden, memory = states
        assert rules.shown is not None
        z = rules.of_input.part(x) + rules.of_state.part(hidden)
        let_in, forget, candidate, let_out = np.split(z, 4, axis=-1)
        point, value_power = rules.gate.power, rules.value.power
        kept = shifted(rules.gate.apply(forget) * memory, point)
        added = shifted(rules.gate.apply(let_in) * rules.value.apply(candidate), point + value_power - rules.cell_power)
        memory = held(kept + added, INT32[1])
        shown = rules.shown.apply(shifted(memory, rules.shown_shift))
        return held(shifted(rules.gate.apply(let_out) * shown, point + value_power - rules.hidden_power)), memory
