"""What LSTM, GRU and SimpleRNN have in common: a cell carried over the time steps.

Every recurrent operation reads x [time, features] and, where given, its initial states, and leaves its final
states as outputs. With `sequences` the first output is the whole sequence [time, units] in the order of
computation; without, only the states come out (the hidden state is what Keras calls the output).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.functions import FUNCTIONS, apply

Function = tuple[str, tuple[float, ...]]
"""A name of `ops.functions.FUNCTIONS` and its parameters."""


@dataclass(frozen=True)
class Recurrent(Attributes):
    required: ClassVar[tuple[str, ...]] = ("kernel", "recurrent")
    optional: ClassVar[tuple[str, ...]] = ("bias",)
    gates: ClassVar[int]
    states: ClassVar[int]

    units: int = 1
    activation: Function = ("tanh", ())
    gate_activation: Function = ("sigmoid", ())
    sequences: bool = False
    backwards: bool = False

    def bias_shape(self) -> Shape:
        return (self.gates * self.units,)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 2, f"a recurrent layer needs [time, features], not {inputs[0]}.")
        expect(len(inputs) in (1, 1 + self.states), f"it needs {self.states} initial states or none.")
        time, features = inputs[0]
        width = self.gates * self.units
        wanted = {"kernel": (features, width), "recurrent": (self.units, width), "bias": self.bias_shape()}
        for role, shape in constants.items():
            expect(shape == wanted[role], f"its {role} has the shape {shape}, not {wanted[role]}.")
        for shape in inputs[1:]:
            expect(shape == (self.units,), f"an initial state has the shape {shape}, not {(self.units,)}.")
        for name, _ in (self.activation, self.gate_activation):
            expect(name in FUNCTIONS, f"there is no function named {name!r}.")
        sequence = ((time, self.units),) if self.sequences else ()
        return sequence + ((self.units,),) * self.states

    @abstractmethod
    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        """The states after one more time step; the first is the output."""

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        states = tuple(inputs[1:]) or (np.zeros((x.shape[0], self.units), x.dtype),) * self.states
        steps = range(x.shape[1])
        outputs = []
        for step in reversed(steps) if self.backwards else steps:
            states = self.cell(x[:, step], states, constants)
            outputs.append(states[0])
        return ((np.stack(outputs, axis=1),) if self.sequences else ()) + states

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        time, features = inputs[0]
        return time * self.gates * self.units * (features + self.units)

    def functions(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """(activation, gate activation), ready to be called."""

        def bind(function: Function) -> Callable[[Array], Array]:
            return lambda x: apply(function[0], function[1], x)

        return bind(self.activation), bind(self.gate_activation)


def with_bias(values: Array, constants: Arrays) -> Array:
    return values + constants["bias"] if "bias" in constants else values
