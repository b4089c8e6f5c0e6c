"""The common part of LSTM, GRU and SimpleRNN: a cell carried over the time steps.

Every recurrent operation reads x [time, features] and, where given, its initial states, and outputs its final states.
With `sequences` the first output is the whole sequence [time, units] in the order of computation; without, only the
states are output (Keras calls the hidden state the output). A mask [time] is the last input: where it is 0, the states
stay, and the sequence repeats its previous row, or zeros.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.base import Arrays, Attributes, T, expect
from nnbuild.ops.functions import FUNCTIONS, Function, apply
from nnbuild.ops.integer import quant_of
from nnbuild.ops.recurrent_rules import (
    VALUES_BELOW,
    Curve,
    Rules,
    bounded,
    curve_of,
    gate_curve,
    point_of,
    power_of,
    products,
    unit_point,
)
from nnbuild.ops.site import Site

GATES_OFF = 1 / 4
"""The magnitude whose tolerance, of four units in the last place of 1, is that of two gates in vectors."""


@dataclass(frozen=True)
class Recurrent(Attributes):
    sequential: ClassVar[bool] = True
    required: ClassVar[tuple[str, ...]] = ("kernel", "recurrent")
    optional: ClassVar[tuple[str, ...]] = ("bias",)
    gates: ClassVar[int]
    states: ClassVar[int]
    value_gate: ClassVar[int]
    """The index of the gate with the function `activation`."""

    units: int = 1
    activation: Function = ("tanh", ())
    gate_activation: Function = ("sigmoid", ())
    sequences: bool = False
    backwards: bool = False
    masked: bool = False
    zero_rows: bool = False
    """Whether the sequence has zeros for masked steps."""

    def initial(self, inputs: Sequence[T]) -> Sequence[T]:
        """Those of the inputs that are initial states."""
        return self.in_format(inputs)[1:]

    def in_format(self, inputs: Sequence[T]) -> Sequence[T]:
        return inputs[:-1] if self.masked else inputs

    def bias_shape(self) -> Shape:
        return (self.gates * self.units,)

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 2, f"a recurrent layer needs [time, features], not {inputs[0]}.")
        given = self.initial(inputs)
        expect(len(given) in (0, self.states), f"it needs {self.states} initial states or none.")
        time, features = inputs[0]
        expect(not self.masked or inputs[-1] == (time,), f"its mask has the shape {inputs[-1]}, not {(time,)}.")
        width = self.gates * self.units
        wanted = {"kernel": (features, width), "recurrent": (self.units, width), "bias": self.bias_shape()}
        for role, shape in constants.items():
            expect(shape == wanted[role], f"its {role} has the shape {shape}, not {wanted[role]}.")
        for shape in given:
            expect(shape == (self.units,), f"an initial state has the shape {shape}, not {(self.units,)}.")
        for name, _ in (self.activation, self.gate_activation):
            expect(name in FUNCTIONS, f"there is no function named {name!r}.")
        sequence = ((time, self.units),) if self.sequences else ()
        return sequence + ((self.units,),) * self.states

    @abstractmethod
    def cell(self, x: Array, states: tuple[Array, ...], constants: Arrays) -> tuple[Array, ...]:
        """The states after one more time step; the first is the output."""

    @abstractmethod
    def integer_cell(self, rules: Rules, x: Array, states: tuple[Ints, ...]) -> tuple[Ints, ...]:
        """The same in integers."""

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        return self._gathered(inputs, self._states(inputs, constants))

    def trace(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        """Each state after every time step: [batch, time, units]."""
        return tuple(np.stack(values, axis=1) for values in zip(*self._states(inputs, constants), strict=True))

    def _states(self, inputs: Sequence[Array], constants: Arrays) -> list[tuple[Array, ...]]:
        x = inputs[0]
        states = tuple(self.initial(inputs)) or (np.zeros((x.shape[0], self.units), x.dtype),) * self.states
        return list(self._walk(inputs, states, lambda step, held: self.cell(step, held, constants)))

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """A state accumulates earlier ones, and may be smaller than any of them; gates err by last bits of 1."""
        traced = np.concatenate(self.trace(inputs, constants), axis=-1)
        largest = np.abs(traced).reshape(len(traced), -1).max(axis=1) + (GATES_OFF if self.gates > 1 else 0.0)
        return tuple(np.broadcast_to(largest.reshape(-1, *(1,) * (y.ndim - 1)), y.shape) for y in outputs)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Our own, since TFLite has no such 16-bit operations; zero is represented exactly in every state."""
        gathered = self._gathered(inputs, self.integer_steps(site, inputs)[1:])
        return tuple(values.astype(t.dtype) for values, t in zip(gathered, site.outputs, strict=True))

    def integer_steps(self, site: Site, inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
        """The initial states, and those after every time step."""
        rules = rules_of(site)
        zeros = (np.zeros((len(inputs[0]), self.units), np.int64),) * self.states
        states = tuple(map(ints, self.initial(inputs))) or zeros
        return [states, *self._walk(inputs, states, lambda step, held: self.integer_cell(rules, step, held))]

    def _walk(
        self,
        inputs: Sequence[Array],
        states: tuple[Array, ...],
        cell: Callable[[Array, tuple[Array, ...]], tuple[Array, ...]],
    ) -> Iterator[tuple[Array, ...]]:
        """The states after each time step."""
        for step, valid in self._steps(inputs):
            after = cell(inputs[0][:, step], states)
            pairs = zip(after, states, strict=True)
            states = after if valid is None else tuple(np.where(valid, new, old) for new, old in pairs)
            yield states

    def _steps(self, inputs: Sequence[Array]) -> Iterator[tuple[int, Array | None]]:
        """The time steps in their order, and where they are valid."""
        steps = range(inputs[0].shape[1])
        for step in reversed(steps) if self.backwards else steps:
            yield step, inputs[-1][:, step, None] != 0 if self.masked else None

    def _gathered(self, inputs: Sequence[Array], walked: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        if not self.sequences:
            return walked[-1]
        rows, row = [], np.zeros_like(walked[0][0])
        for (_, valid), (hidden, *_) in zip(self._steps(inputs), walked, strict=True):
            row = hidden if valid is None else np.where(valid, hidden, 0 if self.zero_rows else row)
            rows.append(row)
        return np.stack(rows, axis=1), *walked[-1]

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        time, features = inputs[0]
        return time * self.gates * self.units * (features + self.units)

    def functions(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """(activation, gate activation) as functions."""

        def bind(function: Function) -> Callable[[Array], Array]:
            return lambda x: apply(function[0], function[1], x)

        return bind(self.activation), bind(self.gate_activation)


def with_bias(values: Array, constants: Arrays) -> Array:
    return values + constants["bias"] if "bias" in constants else values


@lru_cache(maxsize=64)
def rules_of(site: Site[Recurrent]) -> Rules:
    """The integer rules of a recurrent site."""
    attributes = site.attributes
    states = site.outputs[-attributes.states :]
    powers = [power_of(quant_of(state)) for state in states]
    gate = gate_curve(attributes.gate_activation)
    value, shown = _activations(attributes, gate, *powers)
    scales = np.full(attributes.gates, gate.in_scale)
    scales[attributes.value_gate] = value.in_scale
    units = np.repeat(scales, attributes.units)
    return Rules(
        products(site, "kernel", site.inputs[0], units),
        products(site, "recurrent", states[0], units),
        gate,
        value,
        shown,
        powers[0],
        powers[-1],
    )


def _activations(
    attributes: Recurrent, gate: Curve, hidden: int, cell: int | None = None
) -> tuple[Curve, Curve | None]:
    """The curves of a weighted sum and, if there is a cell, of the cell."""
    value = curve_of(attributes.activation, value_point(attributes, hidden, cell))
    if cell is None:
        return value, None
    opened = gate.power + value.power
    if min(opened - cell, opened - hidden, cell - point_of(value.in_scale) + 1) < 1:
        raise ValueError(f"the scales of its states, 2**-{hidden} and 2**-{cell}, do not go together.")
    return value, value


def value_point(attributes: Recurrent, hidden: int, cell: int | None) -> int:
    """The fraction bits of the activation's values: those of the state they enter, unless they are bounded."""
    if bounded(attributes.activation):
        return unit_point(attributes.activation)
    return hidden if cell is None else cell - VALUES_BELOW
