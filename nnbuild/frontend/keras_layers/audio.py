"""MelSpectrogram: frames of a signal, their Fourier transform as two matrix products, mel bands, decibels."""

from __future__ import annotations

from math import log

import numpy as np

from nnbuild.frontend.fourier import factor
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.fourier import WINDOWS, framed, mirrored, window_of
from nnbuild.frontend.keras_layers.spectrogram import STFT
from nnbuild.model.graph import Array
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

LONGEST, LARGEST = 2**15, 1024
"""Limits of a window and of one of its factors."""
BREAK, SCALE = 700.0, 1127.0
"""Constants of Keras's mel scale."""


def _mel_spectrogram(call: Call) -> str:
    config = call.config
    length, hop = config.integer("fft_length", 2048), config.integer("sequence_stride", 512)
    within = config.integer("sequence_length", length) if config.get("sequence_length") else length
    if len(call.shape) != 1 or call.shape[0] <= length // 2 or within > length:
        raise config.error(f"its input {call.shape} is not a signal longer than half a window of {length}.")
    if length > LONGEST or length // factor(length) > LARGEST:
        raise config.error(f"its fft_length of {length} is too large, or cannot be factored.", "Use a power of 2.")
    shape = config.choice("window", "hann", tuple(WINDOWS))
    window = _held(call, "window", window_of(shape, within, length))
    x = call.one(Binary("multiply"), framed(call, mirrored(call, call.input, length // 2), length, hop), right=window)
    power = _power(call, x, length)
    exponent = config.number("mag_exp", 2.0)
    if exponent not in (1.0, 2.0):
        raise config.error(f"it raises magnitudes to the power {exponent:g}.", "Use a mag_exp of 1 or 2.")
    spectrum = power if exponent == 2.0 else call.one(Activation("sqrt"), power)
    rate = config.integer("sampling_rate", 16000)
    edges = config.number("min_freq", 20.0), config.number("max_freq", 0.0) if config.get("max_freq") else rate // 2
    count = config.integer("num_mel_bins", 128)
    if not (0 <= edges[0] < edges[1] and 0 < count <= LARGEST and rate > 0):
        raise config.error(f"its {count} bands from {edges[0]:g} to {edges[1]:g} Hz are empty.")
    bands = _bands(count, length // 2 + 1, rate, edges)
    y = call.one(Dense(), spectrum, kernel=_held(call, "bands", bands))
    if config.flag("power_to_db", True):
        y = _decibels(call, y)
    return call.one(Transpose((1, 0)), y)


def _held(call: Call, role: str, values: Array) -> str:
    return call.constant(role, lambda: np.asarray(values, np.float32))


def _power(call: Call, x: str, length: int) -> str:
    """[frames, length // 2 + 1] of squared magnitudes, by transforms over two factors of the length with rotations
    between them."""
    first = factor(length)
    second, frames = length // first, call.builder.shape(x)[0]
    x = call.one(Transpose((0, 2, 1)), call.one(Reshape((frames, first, second)), x))
    cosine, sine = _waves(first)
    x = call.one(Dense(), x, kernel=_held(call, "first", np.hstack([cosine, -sine])))
    x = call.one(Reshape((frames, second, 2, first)), x)
    real, imaginary = (call.one(Slice((0, 0, i, 0), (1,) * 4, (frames, second, 1, first)), x) for i in (0, 1))
    angle = 2 * np.pi * np.outer(np.arange(second), np.arange(first))[:, None] / length
    turn, other = _held(call, "turn", np.cos(angle)), _held(call, "other turn", np.sin(angle))

    def turned(left: str, right: str, function: str) -> str:
        sides = call.one(Binary("multiply"), left, right=turn), call.one(Binary("multiply"), right, right=other)
        return call.one(Binary(function), *sides)

    x = call.one(Concatenate(2), turned(real, imaginary, "add"), turned(imaginary, real, "subtract"))
    x = call.one(Reshape((frames, first, 2 * second)), call.one(Transpose((0, 3, 2, 1)), x))
    cosine, sine = _waves(second)
    x = call.one(Dense(), x, kernel=_held(call, "second", np.block([[cosine, -sine], [sine, cosine]])))
    x = call.one(Activation("square"), call.one(Reshape((frames, first, 2, second)), x))
    x = call.one(Transpose((0, 2, 1)), call.one(Reduce("sum", 2), x))
    return call.one(Slice((0, 0), (1, 1), (frames, length // 2 + 1)), call.one(Reshape((frames, length)), x))


def _waves(size: int) -> tuple[Array, Array]:
    angle = 2 * np.pi * np.outer(np.arange(size), np.arange(size)) / size
    return np.cos(angle), np.sin(angle)


def _bands(count: int, bins: int, rate: int, edges: tuple[float, float]) -> Array:
    """[bins, bands]: triangles with straight sides on the mel scale; the first bin belongs to none."""

    def mel(hertz: Array) -> Array:
        return np.asarray(SCALE * np.log(1.0 + hertz / BREAK))

    places = mel(np.linspace(0.0, rate / 2, bins)[1:])[:, None]
    corners = np.linspace(mel(np.asarray(edges[0])), mel(np.asarray(edges[1])), count + 2)
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    sides = np.minimum((places - low) / (middle - low), (high - places) / (high - middle))
    return np.pad(np.maximum(0.0, sides), ((1, 0), (0, 0)))


def _decibels(call: Call, x: str) -> str:
    """Limited to `top_db` below the loudest value of the sample."""
    config = call.config
    least, reference = config.number("min_power", 1e-10), abs(config.number("ref_power", 1.0))
    factor = 10.0 / log(10.0)
    x = call.one(Binary("maximum"), x, right=_held(call, "least", np.asarray([least])))
    x = call.one(Binary("multiply"), call.one(Activation("log"), x), right=_held(call, "factor", np.asarray([factor])))
    shift = factor * log(max(reference, least))
    if shift:
        x = call.one(Binary("subtract"), x, right=_held(call, "reference", np.asarray([shift])))
    loudest = call.one(Reduce("max", 0, 2, True), x)
    top = _held(call, "top", np.asarray([config.number("top_db", 80.0)]))
    call.builder.note("a MelSpectrogram is scaled by the loudest sound of each sample, not of a batch of samples")
    return call.one(Binary("maximum"), x, call.one(Binary("subtract"), loudest, right=top))


LAYERS = {"MelSpectrogram": LayerKind(single(_mel_spectrogram)), "STFTSpectrogram": STFT}
