"""The plain recurrent layer: one activation over input and hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nnbuild.graph import Array
from nnbuild.ops.base import Arrays
from nnbuild.ops.recurrent import Recurrent, with_bias


@dataclass(frozen=True)
class SimpleRNN(Recurrent):
    kind: ClassVar[str] = "simple_rnn"
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        activation, _ = self.functions()
        return (activation(with_bias(x @ constants["kernel"] + states[0] @ constants["recurrent"], constants)),)
