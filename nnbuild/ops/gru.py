"""Gated recurrent unit; the gates are in Keras' order: update, reset, candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.base import Arrays
from nnbuild.ops.recurrent import Recurrent, with_bias
from nnbuild.ops.recurrent_rules import Rules, held, shifted


@dataclass(frozen=True)
class GRU(Recurrent):
    """`reset_after` applies the reset gate after the recurrent product, which then has a separate bias."""

    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3
    states: ClassVar[int] = 1
    value_gate: ClassVar[int] = 2

    reset_after: bool = True

    def bias_shape(self) -> Shape:
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        (hidden,) = states
        activation, gate = self.functions()
        kernel, recurrent = constants["kernel"], constants["recurrent"]
        if self.reset_after:
            bias = constants.get("bias", np.zeros((2, 1), x.dtype))
            of_x = np.split(x @ kernel + bias[0], 3, axis=-1)
            of_h = np.split(hidden @ recurrent + bias[1], 3, axis=-1)
            update, reset = gate(of_x[0] + of_h[0]), gate(of_x[1] + of_h[1])
            candidate = activation(of_x[2] + reset * of_h[2])
        else:
            of_x = np.split(with_bias(x @ kernel, constants), 3, axis=-1)
            split = 2 * self.units
            of_h = np.split(hidden @ recurrent[:, :split], 2, axis=-1)
            update, reset = gate(of_x[0] + of_h[0]), gate(of_x[1] + of_h[1])
            candidate = activation(of_x[2] + (reset * hidden) @ recurrent[:, split:])
        return (update * hidden + (1 - update) * candidate,)

    def integer_cell(self, rules: Rules, x: Array, states: tuple[Ints, ...]) -> tuple[Ints, ...]:
        (hidden,) = states
        point, split = rules.gate.power, 2 * self.units
        of_x = np.split(rules.of_input.part(x), 3, axis=-1)
        of_h = np.split(rules.of_state.part(hidden, slice(split)), 2, axis=-1)
        update, reset = rules.gate.apply(of_x[0] + of_h[0]), rules.gate.apply(of_x[1] + of_h[1])
        if self.reset_after:
            recalled = shifted(reset * rules.of_state.part(hidden, slice(split, None)), point)
        else:
            recalled = rules.of_state.part(held(shifted(reset * hidden, point)), slice(split, None))
        candidate = rules.value.apply(of_x[2] + recalled)
        finer = rules.value.power - rules.hidden_power
        return (held(shifted(update * (hidden << finer) + (rules.one - update) * candidate, point + finer)),)
