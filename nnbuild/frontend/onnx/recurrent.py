"""LSTM, GRU and RNN, in one or both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isclose

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined, compared
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, part
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.model.graph import Array
from nnbuild.model.views import View
from nnbuild.ops.functions import Function
from nnbuild.ops.gru import GRU
from nnbuild.ops.layout import Value, arranged
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice

Maker = Callable[[float, float], Function | None]
FUNCTIONS: dict[str, tuple[str, tuple[float, ...], Maker]] = {
    "tanh": ("", (), lambda alpha, beta: ("tanh", ())),
    "sigmoid": ("", (), lambda alpha, beta: ("sigmoid", ())),
    "relu": ("", (), lambda alpha, beta: ("clamp", (0.0, float("inf")))),
    "softsign": ("", (), lambda alpha, beta: ("softsign", ())),
    "softplus": ("", (), lambda alpha, beta: ("softplus", ())),
    "elu": ("alpha", (1.0, 0.0), lambda alpha, beta: ("elu", (alpha,))),
    "leakyrelu": ("alpha", (0.01, 0.0), lambda alpha, beta: ("leaky_relu", (alpha,))),
    "hardsigmoid": ("alpha beta", (0.2, 0.5), lambda alpha, beta: _hard_sigmoid(alpha, beta)),
    "affine": ("alpha beta", (1.0, 0.0), lambda alpha, beta: ("linear", ()) if (alpha, beta) == (1.0, 0.0) else None),
}
"""The numbers that a function takes of the node's lists, their defaults, and the function that they make."""
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (0, 1, 2), "RNN": (0,)}
"""Positions of our gates in ONNX's order: input, output, forget, candidate; update, reset, candidate."""
MOST_STEPS = 512


def recurrent(kind: str, call: Call) -> None:
    x = call.real(0)
    call.expect(len(x.shape) == 3, f"its input has the shape {list(x.shape)}, not [time, batch, features].")
    layout = call.integer("layout", 0)
    if layout:
        x = replace(x, view=View(x.view.atoms, (x.view.axes[1], x.view.axes[0], x.view.axes[2])))
    time, batch, _ = x.shape
    direction = call.text("direction", "forward")
    call.expect(direction in ("forward", "reverse", "bidirectional"), f"its direction is {direction!r}.")
    ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    weights, recurrences = call.weights(1), call.weights(2)
    units = recurrences.shape[-1]
    width = GATES[kind] * units
    fits = weights.shape == (len(ways), width, x.shape[2]) and recurrences.shape == (len(ways), width, units)
    call.expect(fits, f"its weights {list(weights.shape)} and {list(recurrences.shape)} do not match its input.")
    of_units = all(call.shape(slot)[-1:] == (units,) for slot in (5, 6) if call.given(slot))
    call.expect(of_units and call.integer("hidden_size", units) == units, f"its states do not have {units} units.")
    valid = _valid_steps(call, time, batch)
    sequences, states = [], []
    for index, backwards in enumerate(ways):
        sequence, last = _one_way(call, kind, x, index, backwards, units, valid)
        sequences.append(sequence)
        states.append(last)
    every_step = joined(call, sequences, 1)
    order = (2, 0, 1, 3) if layout else (0, 1, 2, 3)
    call.put(replace(every_step, view=View(every_step.view.atoms, tuple(every_step.view.axes[i] for i in order))))
    for place in range(len(states[0])):
        made = joined(call, [last[place] for last in states], 0)
        if layout:
            made = replace(made, view=View(made.view.atoms, (made.view.axes[1], made.view.axes[0], made.view.axes[2])))
        call.put(made, place + 1)


def _valid_steps(call: Call, time: int, batch: int) -> Value | None:
    """Which steps [batch, time] lie within sequence_lens; None where all do."""
    lengths = call.item(4) if call.given(4) else np.full(batch, time)
    call.expect(tuple(lengths.shape) == (batch,), f"its sequence_lens have the shape {list(lengths.shape)}.")
    if isinstance(lengths, np.ndarray) and (lengths == time).all():
        return None
    column = as_shape(call, call.as_value(lengths), (batch, 1))
    return compared(call, "greater", column, np.arange(time, dtype=np.int32)[None])


def _hard_sigmoid(alpha: float, beta: float) -> Function | None:
    slopes = {1 / 5: "hard_sigmoid_fifth", 1 / 6: "hard_sigmoid"}
    name = next((name for slope, name in slopes.items() if isclose(alpha, slope, rel_tol=1e-5)), None)
    return (name, ()) if name is not None and beta == 0.5 else None


def _activations(call: Call, kind: str, index: int, ways: int) -> list[Function]:
    """The functions of one direction; each takes the next numbers of the lists that it needs."""
    count = len(DEFAULTS[kind])
    option = call.attribute("activations")
    names = option.texts if option is not None and option.texts else DEFAULTS[kind] * ways
    call.expect(len(names) == count * ways, f"its activations are {list(names)}.")
    left = {what: list(call.floats(f"activation_{what}")) for what in ("alpha", "beta")}
    found = []
    for name in names:
        needs, defaults, make = FUNCTIONS.get(name.lower(), ("", (), lambda alpha, beta: None))
        given = [
            left[what].pop(0) if what in needs and left[what] else default
            for what, default in zip(left, defaults or (0.0, 0.0), strict=True)
        ]
        function = make(*given)
        if function is None:
            raise call.unsupported(f"its activations are {list(names)}")
        found.append(function)
    return found[index * count :][:count]


def _initial(call: Call, slot: int, index: int) -> Value | Array | None:
    """An initial state of one direction as [batch, units]; None if zero."""
    if not call.given(slot):
        return None
    found = call.item(slot)
    if isinstance(found, np.ndarray):
        values = call.weights(slot)
        values = values[:, index] if call.integer("layout", 0) else values[index]
        return values if values.any() else None
    axis = 1 if call.integer("layout", 0) else 0
    value = call.real(slot)
    ranges = every(value.shape)
    ranges[axis] = (index, 1, 1)
    value = part(call, value, ranges)
    return replace(value, view=View(value.view.atoms, tuple(a for i, a in enumerate(value.view.axes) if i != axis)))


def _one_way(
    call: Call, kind: str, x: Value, index: int, backwards: bool, units: int, valid: Value | None
) -> tuple[Value, list[Value]]:
    """[time, 1, batch, units], and the last states as [1, batch, units]."""
    functions = _activations(call, kind, index, call.shape(1)[0])
    order = np.concatenate([np.arange(units) + gate * units for gate in ORDERS[kind]])
    kernel = call.weights(1)[index][order].T
    inner = call.weights(2)[index][order].T
    both = call.weights(3)[index].reshape(2, -1)[:, order] if call.given(3) else None
    peepholes = call.weights(7)[index] if kind == "LSTM" and call.given(7) else None
    states = [_initial(call, slot, index) for slot in ((5, 6) if kind == "LSTM" else (5,))]
    special = peepholes is not None and peepholes.any()
    mixed = kind == "LSTM" and functions[1] != functions[2]
    clip = call.number("clip", 0.0)
    if special or mixed or clip or call.integer("input_forget", 0):
        call.expect(valid is None, "it has sequence_lens together with peepholes, clip or several activations.")
        parts = Stepwise(call, kind, functions, kernel, inner, both, peepholes if special else None, clip, units)
        return parts.run(x, states, backwards)
    reset_after = kind == "GRU" and bool(call.integer("linear_before_reset", 0))
    attributes = _attributes(kind, functions, units, backwards, reset_after)
    if valid is not None:
        attributes = replace(attributes, masked=True, zero_rows=True)
    constants: dict[str, Array] = {"kernel": np.ascontiguousarray(kernel), "recurrent": np.ascontiguousarray(inner)}
    if both is not None:
        constants["bias"] = both if reset_after else both.sum(axis=0)
    time, batch, features = x.shape
    value = arranged(call, x, [1, 0], [2])
    outer = (batch,) if batch > 1 else ()
    names = [call.seen(value.name, (*outer, time, features))]
    if any(s is not None for s in states):
        call.within_tables(batch * units)
        for state in states:
            item = call.as_value(state if state is not None else np.zeros((batch, units), np.float32))
            item = call.plain(call.as_real(item))
            names.append(call.seen(item.name, (*outer, units)))
    if valid is not None:
        names.append(call.seen(arranged(call, valid, [0], [1]).name, (*outer, time)))
    made = call.adds(attributes, names, [FLOAT] * (1 + len(states)), constants, outer)
    sequence = made[0]
    if backwards:
        shape = (*outer, time, units)
        begins, steps = ((*(0,) * len(outer), time - 1, 0), (*(1,) * len(outer), -1, 1))
        sequence = call.add(Slice(begins, steps, shape), [sequence])
    last = [call.of(name, (1, batch, units)) for name in made[1:]]
    return call.of(sequence, (time, 1, batch, units), (2, 0, 1, 3)), last


def _attributes(kind: str, functions: Sequence[Function], units: int, backwards: bool, after: bool) -> Recurrent:
    if kind == "RNN":
        return SimpleRNN(units, functions[0], sequences=True, backwards=backwards)
    if kind == "GRU":
        return GRU(units, functions[1], functions[0], True, backwards, reset_after=after)
    return LSTM(units, functions[1], functions[0], True, backwards)


class Stepwise:
    """Unrolls a layer that no recurrent kernel supports: peepholes, clipped sums, unequal activations."""

    def __init__(
        self,
        call: Call,
        kind: str,
        functions: Sequence[Function],
        kernel: Array,
        inner: Array,
        both: Array | None,
        peepholes: Array | None,
        clip: float,
        units: int,
    ) -> None:
        self.call = call
        self.kind = kind
        self.functions = functions
        self.weights = kernel, inner
        self.bias = both if both is not None else np.zeros((2, kernel.shape[1]), np.float32)
        self.peepholes = peepholes.reshape(3, -1) if peepholes is not None else None
        self.clip = clip
        self.units = units

    def run(self, x: Value, states: Sequence[Value | Array | None], backwards: bool) -> tuple[Value, list[Value]]:
        call, (time, batch, features) = self.call, x.shape
        call.expect(time <= MOST_STEPS, f"it has {time} steps; nnbuild unrolls at most {MOST_STEPS}.")
        call.within_tables(batch * self.units)
        zero = np.zeros((batch, self.units), np.float32)
        held = [call.as_real(call.as_value(s if s is not None else zero)) for s in states]
        rows: list[Value] = []
        for step in reversed(range(time)) if backwards else range(time):
            ranges = every(x.shape)
            ranges[0] = (step, 1, 1)
            row = as_shape(call, part(call, x, ranges), (batch, features))
            held = self._step(row, held)
            rows.append(as_shape(call, held[0], (1, 1, batch, self.units)))
        if backwards:
            rows.reverse()
        return joined(call, rows, 0), [as_shape(call, h, (1, batch, self.units)) for h in held]

    def _sums(self, x: Value, weights: Array, bias: Array | None) -> Value:
        mode = Mode((x,), FLOAT, bias=None if bias is None else np.ascontiguousarray(bias))
        return dense(self.call, mode, x, np.ascontiguousarray(weights))

    def _gate(self, value: Value, function: Function) -> Value:
        if self.clip:
            value = self.call.activated(value, "clamp", (-self.clip, self.clip))
        return self.call.activated(value, *function)

    def _of(self, value: Value, gate: int) -> Value:
        ranges = every(value.shape)
        ranges[1] = (gate * self.units, 1, self.units)
        return part(self.call, value, ranges)

    def _step(self, x: Value, held: Sequence[Value]) -> list[Value]:
        call, (kernel, inner), bias = self.call, self.weights, self.bias
        if self.kind == "RNN":
            total = combined(call, "add", self._sums(x, kernel, bias[0]), self._sums(held[0], inner, bias[1]))
            return [self._gate(total, self.functions[0])]
        if self.kind == "GRU":
            return [self._gru(x, held[0])]
        total = combined(call, "add", self._sums(x, kernel, bias[0]), self._sums(held[0], inner, bias[1]))
        let_in, forget, candidate, let_out = (self._of(total, i) for i in range(4))
        memory = held[1]
        if self.peepholes is not None:  # input, output, forget
            let_in, forget = (
                combined(call, "add", gate, combined(call, "multiply", memory, self.peepholes[i]))
                for gate, i in ((let_in, 0), (forget, 2))
            )
        opened = self._gate(let_in, self.functions[0])
        if call.integer("input_forget", 0):
            kept = combined(call, "subtract", np.float32(1), opened)
        else:
            kept = self._gate(forget, self.functions[0])
        added = combined(call, "multiply", opened, self._gate(candidate, self.functions[1]))
        memory = combined(call, "add", combined(call, "multiply", kept, memory), added)
        if self.peepholes is not None:
            let_out = combined(call, "add", let_out, combined(call, "multiply", memory, self.peepholes[1]))
        shown = call.activated(memory, *self.functions[2])
        return [combined(call, "multiply", self._gate(let_out, self.functions[0]), shown), memory]

    def _gru(self, x: Value, hidden: Value) -> Value:
        call, (kernel, inner), bias, split = self.call, self.weights, self.bias, 2 * self.units
        of_x = self._sums(x, kernel, bias[0])
        of_h = self._sums(hidden, inner[:, :split], bias[1, :split])
        gates = [
            self._gate(combined(call, "add", self._of(of_x, i), self._of(of_h, i)), self.functions[0]) for i in (0, 1)
        ]
        if call.integer("linear_before_reset", 0):
            recalled = combined(call, "multiply", gates[1], self._sums(hidden, inner[:, split:], bias[1, split:]))
        else:
            reset = combined(call, "multiply", gates[1], hidden)
            recalled = self._sums(reset, inner[:, split:], bias[1, split:])
        candidate = self._gate(combined(call, "add", self._of(of_x, 2), recalled), self.functions[1])
        return combined(
            call,
            "add",
            combined(call, "multiply", gates[0], hidden),
            combined(call, "multiply", combined(call, "subtract", np.float32(1), gates[0]), candidate),
        )


OPERATORS: dict[str, Callable[[Call], None]] = {kind: partial(recurrent, kind) for kind in GATES}
