"""Long short-term memory; the gates lie in Keras' order: input, forget, candidate, output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array
from nnbuild.ops.base import Arrays
from nnbuild.ops.recurrent import Recurrent, with_bias


@dataclass(frozen=True)
class LSTM(Recurrent):
    """States: hidden, cell."""

    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2

    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        hidden, memory = states
        activation, gate = self.functions()
        z = with_bias(x @ constants["kernel"] + hidden @ constants["recurrent"], constants)
        let_in, forget, candidate, let_out = np.split(z, 4, axis=-1)
        memory = gate(forget) * memory + gate(let_in) * activation(candidate)
        return gate(let_out) * activation(memory), memory
