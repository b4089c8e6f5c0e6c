"""TFLite's 8-bit LSTM: 8-bit input, weights and hidden state, 16-bit gates and cell state.

Unlike in LSTMs rewritten from Keras, the file gives its inner scales. It exists in integers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric import lstm
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.integer import as_type, quant_of
from nnbuild.ops.site import Site

GATES = 4
Four = tuple[Multiplier, Multiplier, Multiplier, Multiplier]


@dataclass(frozen=True)
class TfliteLstm(Attributes):
    """[time, features] -> [time, units], and the last cell state [units]; every run begins a new sequence.

    The gates are in the order input, forget, cell, output: kernel [4, features, units], recurrent [4, units, units],
    bias [4, units]. `input_scales` and `recurrent_scales` scale each gate's products to 2**-12, `hidden_scale` the
    product of output gate and tanh(cell) to the hidden state's scale. `state_zero` is the zero point with which the
    hidden state is read back. The cell state's scale is 2**cell_power; a `cell_clip` of 0 is none.
    """

    kind: ClassVar[str] = "tflite_lstm"
    sequential: ClassVar[bool] = True
    required: ClassVar[tuple[str, ...]] = ("kernel", "recurrent", "bias")
    gates: ClassVar[int] = GATES

    units: int
    input_scales: Four
    recurrent_scales: Four
    hidden_scale: Multiplier
    hidden_zero: int
    state_zero: int
    cell_power: int
    cell_clip: int = 0

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(len(inputs[0]) == 2, f"a recurrent layer needs [time, features], not {inputs[0]}.")
        time, features = inputs[0]
        wanted = {
            "kernel": (GATES, features, self.units),
            "recurrent": (GATES, self.units, self.units),
            "bias": (GATES, self.units),
        }
        for role, shape in constants.items():
            expect(shape == wanted[role], f"its {role} has the shape {shape}, not {wanted[role]}.")
        return ((time, self.units), (self.units,))

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        raise NotImplementedError(f"{self.kind} has no floating-point form")

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        layer = self.layer(site)
        x = inputs[0].astype(np.int64)
        hidden = np.full((x.shape[0], self.units), self.state_zero, np.int64)
        cell = np.zeros_like(hidden)
        outputs = []
        for step in range(x.shape[1]):
            hidden, cell = lstm.step(x[:, step], hidden, cell, layer)
            outputs.append(hidden)
        return as_type(np.stack(outputs, axis=1), site.outputs[0]), as_type(cell, site.outputs[1])

    def layer(self, site: Site) -> lstm.Lstm:
        """The constants in the form of `numeric.lstm`."""
        kernel, recurrent, bias = (site.constant(role).astype(np.int64) for role in self.required)
        gates = [
            lstm.Gate(kernel[i].T, recurrent[i].T, bias[i], self.input_scales[i], self.recurrent_scales[i])
            for i in range(GATES)
        ]
        zero = quant_of(site.inputs[0]).zero_point
        scales = (self.cell_power, self.hidden_scale, self.cell_clip)
        return lstm.Lstm(gates[0], gates[1], gates[2], gates[3], zero, self.state_zero, self.hidden_zero, *scales)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        time, features = inputs[0]
        return time * GATES * self.units * (features + self.units)
