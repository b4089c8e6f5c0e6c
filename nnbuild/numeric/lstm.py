"""One step of the 8-bit LSTM: 8-bit input, weights and hidden state, 16-bit gates and cell state.

Gates before their activation have 3 integer bits of 16, gates after it none. The cell state's scale
is a power of two, so products with it are shifts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnbuild.numeric.fixed_point import logistic, tanh
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import INT8, INT16, Ints, ints, requantize, rounding_shift, saturate

GATE_INTEGER_BITS = 3

# The cell state's tanh has a number of integer bits only for these logarithms of its scale. Outside
# them TFLite silently omits the tanh; importers refuse such a file.
CELL_POWERS = range(-15, -8)


class Gate(NamedTuple):
    """A gate's weights (units x inputs, units x hidden), bias, and the scales to 2**-12."""

    input_weights: Ints
    recurrent_weights: Ints
    bias: Ints
    input_scale: Multiplier
    recurrent_scale: Multiplier


class Lstm(NamedTuple):
    """A layer's constants. `cell_power` is the base-2 logarithm of the cell state's scale.

    The hidden state is read back with the state tensor's zero point, which a file may give another
    value than the zero point it is written with. A sequence starts with hidden = state_zero, cell = 0.
    """

    input: Gate
    forget: Gate
    cell: Gate
    output: Gate
    input_zero: int
    state_zero: int
    hidden_zero: int
    cell_power: int
    hidden_scale: Multiplier
    cell_clip: int


def gate_scale(weight_scale: float, value_scale: float) -> Multiplier:
    """From a product's scale to 2**-12, in float32."""
    real = np.float32(weight_scale) * np.float32(value_scale) / np.float32(2.0**-12)
    return quantize_multiplier(float(real))


def hidden_scale(scale: float) -> Multiplier:
    """From the product of the output gate and tanh(cell), 2**-30, to the hidden state's scale, in float32."""
    return quantize_multiplier(float(np.float32(2.0**-15) / np.float32(scale) * np.float32(2.0**-15)))


def _before_activation(gate: Gate, x: Ints, hidden: Ints, layer: Lstm) -> Ints:
    """Subtracts the zero points' share from the accumulator, as TFLite folds it into the bias."""
    from_input = (x - layer.input_zero) @ gate.input_weights.T + gate.bias
    total = saturate(requantize(from_input, *gate.input_scale), *INT16)
    from_hidden = (hidden - layer.state_zero) @ gate.recurrent_weights.T
    return saturate(total + requantize(from_hidden, *gate.recurrent_scale), *INT16)


def open_gate(gate: Gate, x: Ints, hidden: Ints, layer: Lstm) -> Ints:
    """The value of a gate: a number without integer bits."""
    return logistic(_before_activation(gate, x, hidden, layer), GATE_INTEGER_BITS, 16)


def step(x: ArrayLike, hidden: ArrayLike, cell: ArrayLike, layer: Lstm) -> tuple[Ints, Ints]:
    """The next hidden (8-bit) and cell (16-bit) state."""
    value, state = ints(x), ints(hidden)
    opened = [open_gate(gate, value, state, layer) for gate in (layer.input, layer.forget, layer.output)]
    fresh = tanh(_before_activation(layer.cell, value, state, layer), GATE_INTEGER_BITS, 16)
    kept = rounding_shift(opened[1] * ints(cell), 15)
    added = rounding_shift(opened[0] * fresh, 30 + layer.cell_power)
    following = saturate(kept + added, *INT16)
    if layer.cell_clip > 0:
        following = saturate(following, -layer.cell_clip, layer.cell_clip)
    shown = opened[2] * tanh(following, 15 + layer.cell_power, 16)
    return saturate(requantize(shown, *layer.hidden_scale) + layer.hidden_zero, *INT8), following
