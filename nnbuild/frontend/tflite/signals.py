"""Custom operators of fixed-point front ends: from samples to features, with the tables in the file.

Their options are flexbuffers. A filter bank passes 64-bit sums to the square roots that follow; both are one operation
here. The noise estimate persists between runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.frontend.tflite.call import BATCH_ONE, Call
from nnbuild.frontend.tflite.flex_options import flex_options
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, Operator, Quantization
from nnbuild.model.graph import WHOLE, Array
from nnbuild.ops.signal import CONSTANTS, Signal

PREFIX = "CUSTOM Signal"
MOVES = ("CAST", "RESHAPE", "STRIDED_SLICE", "SLICE", "CONCATENATION", "PAD", "SQUEEZE", "EXPAND_DIMS")
"""Operators that may process unsigned 32-bit numbers, besides these."""
FRAMES = (
    "Cut the file after it: the model then takes whole frames, which the program collects, as NAME_features_push does."
)
NOT_COMPUTED = {
    **dict.fromkeys(("Framer", "Stacker", "Delay"), FRAMES),
    **dict.fromkeys(("Irfft", "OverlapAdd"), "Cut the file before it, where the network ends."),
}
"""Operators that collect samples or synthesize sound -> the alternative."""
LARGEST = 2**31 - 1
GAIN_KNOTS = 125


def is_signal(operator: Operator) -> bool:
    return operator.kind.startswith(PREFIX) and operator.kind.removeprefix(PREFIX) in READERS


def refuse_unsigned(operator: Operator) -> None:
    """Other operators would treat large unsigned numbers as negative."""
    tensors = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor is not None]
    if operator.kind == "CAST":
        tensors = tensors if {tensor.dtype for tensor in tensors} - {"uint32", "int32"} else []
    elif operator.kind in MOVES or is_signal(operator):
        return
    for tensor in tensors:
        if tensor.dtype == "uint32":
            raise operator.error(
                f"its tensor {tensor.name!r} is of type uint32, which nnbuild supports only in signal operators.",
                "Cast it to int32 first.",
            )


def plain_cast(operator: Operator) -> Operator:
    """The result of a cast stands for itself, though the file gives no scale."""
    if operator.kind != "CAST":
        return operator
    unit = Quantization((1.0,), (0,), 0)
    outputs = [t if t.quantization or t.dtype != "int8" else replace(t, quantization=unit) for t in operator.outputs]
    return replace(operator, outputs=tuple(outputs))


class Signals:
    """The signal operators of one model, read in order."""

    def __init__(self) -> None:
        self._banks: dict[int, Call] = {}

    def take(self, call: Call) -> None:
        call.expect(call.batch == 1, "it computes one frame at a time.", BATCH_ONE)
        READERS[call.operator.kind.removeprefix(PREFIX)](self, call)

    def bank(self, call: Call) -> None:
        """Computed together with the roots that follow."""
        self._banks[call.output().index] = call

    def roots(self, call: Call) -> None:
        bank = self._banks.get(call.stored(0).index)
        if bank is None:
            raise call.error("its input does not come from SignalFilterBank.", CONVERT_AGAIN)
        (energies,) = _inputs(bank, "uint32", 0)
        (shift,) = _inputs(call, "int32", 1)
        constants = {role: _table(bank, 1 + i) for i, role in enumerate(CONSTANTS["bands"])}
        _check_bank(bank, constants, call.tensor(energies).shape[-1])
        names = {role: bank.constant(1 + i, constants[role], WHOLE) for i, role in enumerate(CONSTANTS["bands"])}
        _done(call, Signal("bands"), [energies, shift], names)


def _numbers(call: Call, *wanted: tuple[str, int]) -> tuple[int, ...]:
    """Options by name, each from 0 to a maximum."""
    found = {name: value for name, value in flex_options(call).items() if isinstance(value, int)}
    for name, largest in wanted:
        call.expect(name in found, f"its option {name!r} is missing.")
        call.expect(0 <= found[name] <= largest, f"its option {name!r} is {found[name]}, not from 0 to {largest}.")
    return tuple(found[name] for name, _ in wanted)


def _inputs(call: Call, dtype: str, *indices: int) -> list[str]:
    for index in indices:
        found = call.stored(index).dtype
        call.expect(found == dtype, f"its input {index} is of type {found}, not {dtype}.", CONVERT_AGAIN)
    return [call.value(index) for index in indices]


def _table(call: Call, index: int) -> Array:
    stored = call.stored(index)
    call.expect(call.is_constant(index), f"its table {stored.name!r} is computed at run time.", CONVERT_AGAIN)
    call.expect(stored.dtype == "int16", f"its table {stored.name!r} is of type {stored.dtype}, not int16.")
    return np.array(stored.values().reshape(-1), np.int16)


def _check_bank(call: Call, constants: dict[str, Array], bins: int) -> None:
    weights, rests, first, starts, widths = (constants[role].astype(np.int64) for role in CONSTANTS["bands"])
    (channels,) = _numbers(call, ("num_channels", LARGEST))
    count = min(len(first), len(starts), len(widths))
    call.expect(count == len(widths) == channels + 1 and len(rests) == len(weights), "its tables have the wrong sizes.")
    inside = (first >= 0) & (starts >= 0) & (widths >= 0)
    inside &= (first + widths <= bins) & (starts + widths <= len(weights))
    call.expect(bool(inside.all()), "its tables index beyond its bins or weights.")
    call.expect(bool((weights >= 0).all() and (rests >= 0).all()), "its weights are negative.", CONVERT_AGAIN)


def _done(call: Call, attributes: Signal, inputs: list[str], constants: dict[str, str] | None = None) -> None:
    """Requires the computed shapes to match the file's."""
    likes = [call.like(index) for index in range(len(call.operator.outputs))]
    given = {role: call.assembly.held(name).data.shape for role, name in (constants or {}).items()}
    try:
        shapes = attributes.shapes([call.tensor(name).shape for name in inputs], given)
    except ValueError as error:
        raise call.error(str(error), CONVERT_AGAIN) from error
    call.expect(shapes == tuple(like.shape for like in likes), "its outputs have the wrong shapes.")
    for index, made in enumerate(call.adds(attributes, inputs, likes, constants or {})):
        call.done(made, index)


def _window(signals: Signals, call: Call) -> None:
    weights = call.constant(1, _table(call, 1), WHOLE)
    _done(call, Signal("window", _numbers(call, ("shift", 31))), _inputs(call, "int16", 0), {"weights": weights})


def _transform(signals: Signals, call: Call) -> None:
    _done(call, Signal("transform", _numbers(call, ("fft_length", 1 << 15))), _inputs(call, "int16", 0))


def _energy(signals: Signals, call: Call) -> None:
    """Bins beyond the range, which other implementations leave unset, are zero."""
    numbers = _numbers(call, ("start_index", LARGEST), ("end_index", LARGEST))
    _done(call, Signal("energy", numbers), _inputs(call, "int16", 0))


def _less_noise(signals: Signals, call: Call) -> None:
    wanted = ("smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing")
    shares = _numbers(call, *((name, LARGEST) for name in (*wanted, "min_signal_remaining")))
    bits = _numbers(call, ("smoothing_bits", 31), ("spectral_subtraction_bits", 31), ("clamping", 1))
    (signal,) = _inputs(call, "uint32", 0)
    before = call.assembly.state(call.like(1), np.zeros(call.like(1).shape, np.int32))
    likes = [call.like(0), call.like(1)]
    call.expect(likes[0].shape == likes[1].shape == call.tensor(signal).shape, "its tensors have several shapes.")
    made, noise = call.adds(Signal("less_noise", shares + bits), [signal, before], likes)
    call.assembly.keep(before, noise)
    call.done(made, 0)
    call.done(noise, 1)


def _gain(signals: Signals, call: Call) -> None:
    gains = _table(call, 2)
    call.expect(len(gains) >= GAIN_KNOTS, f"its table has {len(gains)} gains, not {GAIN_KNOTS}.", CONVERT_AGAIN)
    inputs = _inputs(call, "uint32", 0, 1)
    _done(call, Signal("gain", _numbers(call, ("snr_shift", 63))), inputs, {"gains": call.constant(2, gains, WHOLE)})


def _logarithm(signals: Signals, call: Call) -> None:
    numbers = _numbers(call, ("output_scale", 1 << 16), ("input_correction_bits", 31))
    _done(call, Signal("logarithm", numbers), _inputs(call, "uint32", 0))


def _plain(function: str, signals: Signals, call: Call) -> None:
    _done(call, Signal(function), _inputs(call, "int16", 0))


READERS: dict[str, Callable[[Signals, Call], None]] = {
    "Window": _window,
    "FftAutoScale": partial(_plain, "enlarge"),
    "Rfft": _transform,
    "Energy": _energy,
    "FilterBank": Signals.bank,
    "FilterBankSquareRoot": Signals.roots,
    "FilterBankSpectralSubtraction": _less_noise,
    "PCAN": _gain,
    "FilterBankLog": _logarithm,
}
