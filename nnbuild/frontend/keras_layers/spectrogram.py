"""STFTSpectrogram: two convolutions along time with the file's kernels, combined by their squares."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_layers.channels_first import in_either_order
from nnbuild.frontend.keras_layers.convolution import PADDINGS, Geometry, as_row, from_row, pads
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.reshape import Reshape

KERNELS = {"real": ("real_kernel",), "imag": ("imag_kernel",)}
MODES = ("log", "magnitude", "psd", "real", "imag", "stft")
EPSILON = 1e-7
"""Keras's constant under roots and logarithms."""


def _kernels(mode: str) -> tuple[str, ...]:
    return KERNELS.get(mode, ("real_kernel", "imag_kernel"))


def _weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(_kernels(config.choice("mode", "log", MODES)))


def _spectrogram(call: Call) -> str:
    config = call.config
    if len(call.shape) != 2 or call.shape[1] != 1:
        raise config.error(f"it needs an input [time, 1], not {call.shape}.", "Give it one channel.")
    mode, length = config.choice("mode", "log", MODES), config.integer("frame_length", 256)
    step = config.integer("frame_step") if config.get("frame_step") else max(1, length // 2)
    points = config.integer("fft_length") if config.get("fft_length") else 1 << (length - 1).bit_length()
    bins, padding = points // 2 + 1, config.choice("padding", "valid", PADDINGS)
    if padding == "valid" and length > call.shape[0]:
        raise config.error(f"its frames of {length} are longer than its input {call.shape}.", "Use shorter frames.")
    window, x = Geometry((1, length), (1, step), (1, 1), padding, flat=True), as_row(call, flat=True)

    def part(role: str) -> str:
        kernel = call.weight(role, (length, 1, bins), (1, length, 1, bins))
        return from_row(call, call.one(Conv2D((1, step), (1, 1), pads(call, x, window)), x, kernel=kernel), flat=True)

    parts = [part(role) for role in _kernels(mode)]
    if len(parts) == 1:
        made = parts[0]
    elif mode == "stft":
        made = call.one(Concatenate(1), *parts)
    else:
        made = _power(call, mode, [call.one(Activation("square"), each) for each in parts], bins)
    shape = call.builder.shape(made)
    return call.one(Reshape((*shape, 1)), made) if config.flag("expand_dims", False) else made


def _power(call: Call, mode: str, squares: list[str], bins: int) -> str:
    power = call.one(Binary("add"), *squares)
    if mode == "psd":  # the inner bins also stand for negative frequencies
        twice = np.full(bins, 2.0, np.float32)
        twice[[0, -1]] = 1.0
        return call.one(Binary("multiply"), power, right=call.constant("twice", lambda: twice))
    least = call.constant("least", lambda: np.full(1, EPSILON, np.float32))
    made = call.one(Activation("sqrt"), call.one(Binary("maximum"), power, right=least))
    if mode == "magnitude":
        return made
    return call.one(Activation("log"), call.one(Binary("maximum"), made, right=least))


def _in_either_order(call: Call) -> tuple[str, ...]:
    """With an axis of one channel at the end, that one comes first, too."""
    axes = 2 if call.config.flag("expand_dims", False) else 1
    return in_either_order(single(_spectrogram), 1, axes)(call)


STFT = LayerKind(_in_either_order, _weights)
