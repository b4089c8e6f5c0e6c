"""UNIDIRECTIONAL_SEQUENCE_LSTM, into which converters turn Keras' LSTM layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.tflite.call import BATCH_ONE, LARGEST_SCALE, Call
from nnbuild.frontend.tflite.linear import within_bits
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.records import Tensor as Stored
from nnbuild.model.graph import Array, Quant, Shape, Tensor
from nnbuild.numeric import lstm
from nnbuild.numeric.multiplier import SMALLEST_SCALE, Multiplier, is_power_of_two
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.tflite_lstm import GATES, TfliteLstm

KIND = "UnidirectionalSequenceLSTMOptions"
X, KERNEL, RECURRENT, PEEPHOLES, BIAS, PROJECTION, HIDDEN, CELL, NORMS = 0, 1, 5, 9, 12, 16, 18, 19, 20
"""Where an operator lists its input, the four of each sort, and its states."""
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
    (_, features), units = shape, call.output().shape[-1]
    kernel = np.stack([_weights(call, KERNEL + i, (units, features)).T for i in range(GATES)])
    recurrent = np.stack([_weights(call, RECURRENT + i, (units, units)).T for i in range(GATES)])
    bias = np.stack([_weights(call, BIAS + i, (units,)) for i in range(GATES)])
    call.assembly.note("LSTM layers begin every run anew, as Keras means it; TFLite carries them until it is reset.")
    make = _in_float if call.is_float() else _in_integers
    call.reshaped(make(call, call.seen(x, shape), units, (kernel, recurrent, bias)))


def _sequence(call: Call) -> tuple[str, Shape]:
    """The input and its [time, features]."""
    (x,) = call.data_inputs(X)
    whole = call.whole(X)
    call.expect(len(whole) == 3, f"its input has the shape {list(whole)}, not [batch, time, features].")
    time_first = bool(call.option(KIND, "TimeMajor", False))
    samples = whole[1] if time_first else whole[0]
    call.expect(samples == call.batch and not (time_first and call.batch > 1), "it mixes samples.", BATCH_ONE)
    return x, (whole[0] if time_first else whole[1], whole[2])


def _weights(call: Call, index: int, shape: Shape) -> Array:
    stored = call.stored(index)
    values = call.weights(index)
    call.expect(values.shape == shape, f"its {stored.name!r} has the shape {list(values.shape)}, not {list(shape)}.")
    if not call.is_float():
        wanted = "int32" if len(shape) == 1 else "int8"
        call.expect(stored.dtype == wanted, f"its {stored.name!r} is {stored.dtype}, not {wanted}.", CONVERT_AGAIN)
    return values


def _in_float(call: Call, x: str, units: int, weights: tuple[Array, Array, Array]) -> str:
    clip = call.number(KIND, "CellClip", 0.0)
    if clip > 0:
        call.assembly.note(f"Converters limit an LSTM's cell state to {clip:g}, which Keras does not; it is left out.")
    kernel, recurrent, bias = weights
    constants = {
        "kernel": call.constant(KERNEL, np.concatenate(list(kernel), axis=1)),
        "recurrent": call.constant(RECURRENT, np.concatenate(list(recurrent), axis=1)),
        "bias": call.constant(BIAS, bias.reshape(-1)),
    }
    outputs = call.adds(LSTM(units=units, sequences=True), [x], [call.like()] * 3, constants)
    return outputs[0]


def _in_integers(call: Call, x: str, units: int, weights: tuple[Array, Array, Array]) -> str:
    own, out = call.tensor(x).quant, call.like().quant
    assert own is not None and out is not None
    call.expect(call.output().dtype == "int8", "nnbuild computes it in int8 and float32, not in int16.", CONVERT_AGAIN)
    hidden, cell = call.stored(HIDDEN), call.stored(CELL)
    call.expect(len(call.operator.intermediates) == GATES + 1, "it does not say the scales inside it.", CONVERT_AGAIN)
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


def _clip(call: Call, scale: float) -> int:
    clip = call.number(KIND, "CellClip", 0.0)
    with np.errstate(over="ignore"):
        return int(np.clip(np.float32(clip) / np.float32(scale), -32768, 32767)) if clip > 0 else 0


OPERATORS: dict[str, Callable[[Call], None]] = {"UNIDIRECTIONAL_SEQUENCE_LSTM": sequence_lstm}
