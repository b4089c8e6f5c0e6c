"""Recurrent operators: UNIDIRECTIONAL_SEQUENCE_LSTM, which converters generate from Keras LSTM layers, and older
ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from nnbuild.frontend.other_arithmetic import DYNAMIC_RANGE
from nnbuild.frontend.tflite.call import BATCH_ONE, LARGEST_SCALE, Call
from nnbuild.frontend.tflite.linear import within_bits
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.records import Tensor as Stored
from nnbuild.model.graph import Array, Quant, Shape, Tensor
from nnbuild.numeric import lstm
from nnbuild.numeric.multiplier import SMALLEST_SCALE, Multiplier, is_power_of_two
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.functions import Function
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice
from nnbuild.ops.tflite_lstm import GATES, TfliteLstm

KIND = "UnidirectionalSequenceLSTMOptions"
X, KERNEL, RECURRENT, PEEPHOLES, BIAS, PROJECTION, HIDDEN, CELL, NORMS = 0, 1, 5, 9, 12, 16, 18, 19, 20
"""Positions of an operator's input, the first of each group of weights, and its states."""
TANH = 4
PLAIN = "Use a plain LSTM layer."
PRODUCT_LIMIT = 2.0**24


def sequence_lstm(call: Call) -> None:
    for index in (*range(PEEPHOLES, BIAS), PROJECTION, PROJECTION + 1, *range(NORMS, NORMS + GATES)):
        call.expect(
            not call.given(index),
            "it has peepholes, a projection or a normalization inside.",
            PLAIN,
        )
    function = int(call.option(KIND, "FusedActivationFunction", TANH))
    call.expect(function == TANH, f"its activation is number {function}, not tanh.", PLAIN)
    clip = call.number(KIND, "ProjClip", 0.0)
    call.expect(clip == 0, f"its ProjClip is {clip:g}.", PLAIN)
    x, shape = _sequence(call)
    (_, features), units = shape, _units(call)
    weights = _gates(call, features, units)
    call.assembly.note(ANEW)
    make = _in_float if call.is_float() else _in_integers
    call.reshaped(make(call, call.seen(x, shape), units, weights))


def _gates(call: Call, features: int, units: int, offset: int = 0) -> tuple[Array, Array, Array]:
    """(kernels, recurrent kernels, biases), one of each per gate."""
    places = range(offset, offset + GATES)
    kernel = np.stack([_weights(call, KERNEL + i, (units, features)).T for i in places])
    recurrent = np.stack([_weights(call, RECURRENT + i, (units, units)).T for i in places])
    return kernel, recurrent, np.stack([_weights(call, BIAS + i, (units,)) for i in places])


def _sequence(call: Call, kind: str = KIND) -> tuple[str, Shape]:
    """The input and its [time, features]."""
    (x,) = call.data_inputs(X)
    whole = call.whole(X)
    call.expect(len(whole) == 3, f"its input has the shape {list(whole)}, not [batch, time, features].")
    time_first = bool(call.option(kind, "TimeMajor", False))
    samples = whole[1] if time_first else whole[0]
    call.expect(samples == call.batch and not (time_first and call.batch > 1), "it mixes samples.", BATCH_ONE)
    return x, (whole[0] if time_first else whole[1], whole[2])


def _weights(call: Call, index: int, shape: Shape) -> Array:
    stored = call.stored(index)
    values = call.weights(index)
    call.expect(values.shape == shape, f"its {stored.name!r} has the shape {list(values.shape)}, not {list(shape)}.")
    if call.is_float():
        call.assembly.unlike = DYNAMIC_RANGE if stored.dtype == "int8" else call.assembly.unlike
    else:
        wanted = "int32" if len(shape) == 1 else "int8"
        call.expect(stored.dtype == wanted, f"its {stored.name!r} is {stored.dtype}, not {wanted}.", CONVERT_AGAIN)
    return values


def _in_float(
    call: Call, x: str, units: int, weights: tuple[Array, Array, Array], kind: str = KIND, backwards: bool = False
) -> str:
    clip = call.number(kind, "CellClip", 0.0)
    if clip > 0:
        call.assembly.note(f"Converters limit an LSTM's cell state to {clip:g}, which Keras does not; it is left out.")
    kernel, recurrent, bias = weights
    constants = {
        "kernel": call.constant(KERNEL, np.concatenate(list(kernel), axis=1)),
        "recurrent": call.constant(RECURRENT, np.concatenate(list(recurrent), axis=1)),
        "bias": call.constant(BIAS, bias.reshape(-1)),
    }
    attributes = LSTM(units=units, sequences=True, backwards=backwards)
    return call.adds(attributes, [x], [call.like()] * 3, constants)[0]


def _in_integers(call: Call, x: str, units: int, weights: tuple[Array, Array, Array]) -> str:
    own, out = call.tensor(x).quant, call.like().quant
    assert own is not None and out is not None
    call.expect(call.output().dtype == "int8", "nnbuild supports it in int8 and float32, not in int16.", CONVERT_AGAIN)
    hidden, cell = call.stored(HIDDEN), call.stored(CELL)
    call.expect(
        len(call.operator.intermediates) == GATES + 1, "it lacks the scales of its intermediate tensors.", CONVERT_AGAIN
    )
    (state_scale, state_zero), (cell_scale, _) = _format(hidden, "int8"), _format(cell, "int16")
    inside_scale, inside_zero = _format(call.operator.intermediates[GATES], "int8")
    power, exponent = is_power_of_two(cell_scale)
    if not power or exponent not in lstm.CELL_POWERS:
        raise cell.error(f"its scale is {cell_scale:.6g}, not a power of two from 2^-15 to 2^-9.", CONVERT_AGAIN)
    kernel, recurrent, bias = weights
    for gate in range(GATES):
        within_bits(call, kernel[gate], 0, bias[gate])
        within_bits(call, recurrent[gate], 0, None)
    attributes = TfliteLstm(
        units=units,
        input_scales=tuple(_scale(call, KERNEL + i, own.scale) for i in range(GATES)),  # type: ignore[arg-type]
        recurrent_scales=tuple(_scale(call, RECURRENT + i, state_scale) for i in range(GATES)),  # type: ignore[arg-type]
        hidden_scale=lstm.hidden_scale(inside_scale),
        hidden_zero=inside_zero,
        state_zero=state_zero,
        cell_power=exponent,
        cell_clip=_clip(call, cell_scale),
    )
    constants = {
        "kernel": call.constant(KERNEL, kernel),
        "recurrent": call.constant(RECURRENT, recurrent),
        "bias": call.constant(BIAS, bias),
    }
    last_cell = Tensor(f"{call.layer}/cell", (units,), "int16", Quant((cell_scale,)))
    return call.adds(attributes, [x], [call.like(), last_cell], constants)[0]


def _format(tensor: Stored, dtype: str) -> tuple[float, int]:
    known = tensor.quantization
    if known is None or len(known.scales) != 1 or (tensor.dtype != dtype and tensor.dtype != "int16"):
        raise tensor.error(f"it is a state of an LSTM, and must be {dtype} with one scale.", CONVERT_AGAIN)
    scale, zero = known.scales[0], known.zero_points[0]
    if not (SMALLEST_SCALE <= scale <= LARGEST_SCALE and -128 <= zero <= 127):
        raise tensor.error(f"its scale is {scale:.6g} and its zero point {zero}.")
    return scale, zero


def _scale(call: Call, index: int, other: float) -> Multiplier:
    stored = call.stored(index)
    known = stored.quantization
    if known is None or len(known.scales) != 1 or any(known.zero_points):
        raise stored.error("it holds a gate's weights, and must have one scale and no zero point.", CONVERT_AGAIN)
    call.ratio(known.scales[0] * other * 2.0**12, PRODUCT_LIMIT)
    return lstm.gate_scale(known.scales[0], other)


def _units(call: Call) -> int:
    shape = call.output().shape
    call.expect(bool(shape), "its output has no axes.")
    return shape[-1]


def _clip(call: Call, scale: float) -> int:
    clip = call.number(KIND, "CellClip", 0.0)
    with np.errstate(over="ignore"):
        return int(np.clip(np.float32(clip) / np.float32(scale), -32768, 32767)) if clip > 0 else 0


def rnn(call: Call) -> None:
    """One step; its state persists between runs."""
    kind, whole = "RNNOptions", call.whole(X)
    (x,) = call.data_inputs(X)
    call.expect(call.batch == 1 and len(whole) == 2 and whole[0] == 1, f"its input is {list(whole)}.", BATCH_ONE)
    units = _units(call)
    before = call.assembly.state(replace(call.like(), name=call.stored(4).name, shape=(units,)))
    made = _simple(call, kind, [call.seen(x, (1, whole[1])), before], units, 1)[0]
    call.assembly.keep(before, made)
    call.reshaped(made)


def sequence_rnn(call: Call) -> None:
    kind = "SequenceRNNOptions"
    x, shape = _sequence(call, kind)
    call.assembly.note(ANEW)
    call.reshaped(_simple(call, kind, [call.seen(x, shape)], _units(call), 1, sequences=True)[0])


def both_ways_rnn(call: Call) -> None:
    kind = "BidirectionalSequenceRNNOptions"
    for index in (9, 10, 11):
        call.expect(not call.given(index), "it has a second input.", "Use a plain bidirectional layer.")
    x, shape = _sequence(call, kind)
    call.assembly.note(ANEW)
    units = [call.stored(first).shape[0] if call.stored(first).shape else 0 for first in (1, 5)]
    x = call.seen(x, shape)
    made = [
        _simple(call, kind, [x], n, first, sequences=True, backwards=first > 1)[0]
        for n, first in zip(units, (1, 5), strict=True)
    ]
    _both(call, kind, made)


def both_ways_lstm(call: Call) -> None:
    """Two float LSTMs, whose weights are listed one after the other in the same order."""
    kind = "BidirectionalSequenceLSTMOptions"
    call.expect(call.is_float(), f"nnbuild supports {call.operator.kind} only in float32.", "Convert it to float32.")
    function = int(call.option(kind, "FusedActivationFunction", TANH))
    call.expect(function == TANH, f"its activation is number {function}, not tanh.", PLAIN)
    x, shape = _sequence(call, kind)
    call.assembly.note(ANEW)
    x, made = call.seen(x, shape), []
    for offset in (0, BACKWARDS):
        for index in (*range(PEEPHOLES, BIAS), PROJECTION, PROJECTION + 1):
            call.expect(not call.given(offset + index), "it has peepholes or a projection inside.", PLAIN)
        units = call.stored(offset + KERNEL).shape[0]
        weights = _gates(call, shape[1], units, offset)
        made.append(_in_float(call, x, units, weights, kind, backwards=bool(offset)))
    for index in range(39, len(call.operator.inputs)):
        call.expect(not call.given(index), "it has a second input.", PLAIN)
    _both(call, kind, made)


ANEW = "Recurrent layers reset their state at every run, as in Keras; TFLite keeps it until a reset."
BACKWARDS = 17
"""Offset of the backward direction's weights."""


def _both(call: Call, kind: str, made: list[str]) -> None:
    """Outputs are in time order, concatenated or separate; the backward direction computed them in reverse."""
    time, units = call.shape(made[1])
    made[1] = call.add(Slice((time - 1, 0), (-1 if time > 1 else 1, 1), (time, units)), [made[1]])
    if call.option(kind, "MergeOutputs", False):
        call.reshaped(call.add(Concatenate(1), made))
        return
    call.reshaped(made[0], 0)
    call.reshaped(made[1], 1)


def _simple(
    call: Call,
    kind: str,
    inputs: list[str],
    units: int,
    first: int,
    *,
    sequences: bool = False,
    backwards: bool = False,
) -> tuple[str, ...]:
    """The weights are listed from `first` on: [units, features], [units, units], [units]."""
    call.expect(call.is_float(), f"nnbuild supports {call.operator.kind} only in float32.", "Convert it to float32.")
    code = int(call.option(kind, "FusedActivationFunction", 0))
    call.expect(code in ACTIVATIONS, f"its activation is number {code}.", PLAIN)
    features = call.shape(inputs[0])[-1]
    constants = {
        "kernel": call.constant(first, _weights(call, first, (units, features)).T),
        "recurrent": call.constant(first + 1, _weights(call, first + 1, (units, units)).T),
        "bias": call.constant(first + 2, _weights(call, first + 2, (units,))),
    }
    attributes = SimpleRNN(units=units, activation=ACTIVATIONS[code], sequences=sequences, backwards=backwards)
    return call.adds(attributes, inputs, [call.like()] * (2 if sequences else 1), constants)


ACTIVATIONS: dict[int, Function] = {
    0: ("linear", ()),
    1: ("clamp", (0.0, inf)),
    2: ("clamp", (-1.0, 1.0)),
    3: ("clamp", (0.0, 6.0)),
    TANH: ("tanh", ()),
}


OPERATORS: dict[str, Callable[[Call], None]] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": sequence_rnn,
    "BIDIRECTIONAL_SEQUENCE_RNN": both_ways_rnn,
    "BIDIRECTIONAL_SEQUENCE_LSTM": both_ways_lstm,
    "RNN": rnn,
}
