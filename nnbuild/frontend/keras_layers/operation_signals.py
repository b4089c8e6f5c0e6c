"""Fourier transforms and frames of signals as single operations. Complex numbers are two tensors."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.fourier import LONGEST, WINDOWED, is_direct, part_by_part, waves
from nnbuild.frontend.keras_layers import fourier
from nnbuild.frontend.keras_layers.base import Call, options
from nnbuild.frontend.keras_layers.normalization import as_array
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, Operation
from nnbuild.frontend.keras_layers.operation_shapes import BATCH
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

BACK = 1 << 21
"""The largest weights of a transform back that adds up its frames."""


def _shape(call: Call, x: str) -> Shape:
    """That of a signal, whose last axis is no batch."""
    shape = call.builder.shape(x)
    if not shape:
        raise call.config.error("its signal has no axis but the batch.", BATCH)
    return shape


def _complex(call: Call) -> list[str]:
    parts = list(call.inputs)
    if len(parts) != 2 or _shape(call, parts[0]) != call.builder.shape(parts[1]):
        raise call.config.error("it is not called with a real and an imaginary part.", OTHERWISE)
    return parts


def _fft(call: Call) -> tuple[str, ...]:
    parts = _complex(call)
    size = call.builder.shape(parts[0])[-1]
    return tuple(fourier.transform(call, parts, size, size))


def _of_planes(call: Call, inverse: bool) -> tuple[str, ...]:
    """Along the last axis, and along the one before."""
    parts = _complex(call)
    rank = len(call.builder.shape(parts[0]))
    if rank < 2:
        raise call.config.error("it transforms over the batch.", BATCH)
    for _ in range(2):
        size = call.builder.shape(parts[0])[-1]
        parts = fourier.transform(call, parts, size, size, inverse=inverse)
        parts = [call.one(Transpose((*range(rank - 2), rank - 1, rank - 2)), x) for x in parts]
    return tuple(parts)


def _length(call: Call, otherwise: int) -> int:
    found = options(call)
    return found.integer("fft_length") if found.get("fft_length") is not None else otherwise


def _rfft(call: Call) -> tuple[str, ...]:
    length = _length(call, _shape(call, call.input)[-1])
    return tuple(fourier.transform(call, [call.input], length, length // 2 + 1))


def _mirroring(bins: int, length: int) -> Array:
    """How often each number of half a spectrum stands in a whole one."""
    counts = np.full(bins, 2.0)
    counts[0] = 1.0
    if length % 2 == 0:
        counts[length // 2 :] = 1.0
    return counts


def _back(bins: int, length: int) -> Array:
    """[2 * bins, length]: from half a spectrum to a real signal."""
    halves = waves(bins, length, length, 2, inverse=True)[..., :length]
    return part_by_part(halves * _mirroring(bins, length)[:, None, None])


def _irfft(call: Call) -> str:
    parts = _complex(call)
    length = _length(call, 2 * (call.builder.shape(parts[0])[-1] - 1))
    bins = length // 2 + 1
    if length < 1 or length > LONGEST:
        raise call.config.error(f"its transform has {length} points.", f"Use 1 to {LONGEST}.")
    parts = [fourier.fitted(call, x, bins) for x in parts]
    if is_direct(length, bins, length, 1):
        if 2 * bins * length > fourier.LARGEST:
            raise call.config.error(f"its transform of {length} points cannot be divided.", fourier.POWER)
        return fourier.product(call, parts, f"back {length}", _back(bins, length))
    kept = np.ones(bins, np.float32)
    kept[[0, *([bins - 1] if length % 2 == 0 else [])]] = 0.0
    parts[1] = call.one(Binary("multiply"), parts[1], right=call.constant(f"inner {length}", lambda: kept))
    rest = [_reversed(call, x, (length - 1) // 2) for x in parts]
    rest[1] = call.one(Binary("multiply"), rest[1], right=call.constant("minus one", lambda: -np.ones(1, np.float32)))
    last = len(call.builder.shape(parts[0])) - 1
    whole = [call.one(Concatenate(last), *each) for each in zip(parts, rest, strict=True)]
    return fourier.transform(call, whole, length, length, inverse=True)[0]


def _reversed(call: Call, x: str, count: int) -> str:
    """So many numbers of the last axis behind the first, backwards."""
    lead = call.builder.shape(x)[:-1]
    ones = (1,) * len(lead)
    return call.one(Slice((*(0 for _ in lead), count), (*ones, -1), (*lead, count)), x)


def _window(call: Call, found: Config, length: int) -> Array | None:
    within, value = found.integer("sequence_length"), found.get("window")
    if within > length:
        raise call.config.error(f"its frames of {within} are longer than its transform of {length}.")
    if value is None and "window" in {**call.config.values, **call.named}:
        return None
    if value is None or isinstance(value, str):
        return fourier.window_of(found.choice("window", "hann", tuple(fourier.WINDOWS)), within, length)
    held = as_array(call.config, value, "window")
    if held.shape != (within,):
        raise call.config.error(f"its window of {held.shape} does not fit its frames of {within}.")
    return fourier.centred(held, length)


def _stft(call: Call) -> tuple[str, ...]:
    """Short transforms are one convolution along time, with the window in its weights."""
    found, (*lead, size) = options(call), _shape(call, call.input)
    length, hop = found.integer("fft_length"), found.integer("sequence_stride")
    half = length // 2 if found.flag("center", True) else 0
    if half >= size or length > size + 2 * half or length > LONGEST:
        raise call.config.error(f"its frames of {length} do not fit into {size}.")
    window, bins = _window(call, found, length), length // 2 + 1
    with call.builder.along(tuple(lead)):
        x = fourier.mirrored(call, call.input, half)
        frames = 1 + (size + 2 * half - length) // hop
        if 2 * length * bins > WINDOWED:
            x = fourier.framed(call, x, length, hop)
            if window is not None:
                held = call.constant("window", partial(np.asarray, window, np.float32))
                x = call.one(Binary("multiply"), x, right=held)
            return tuple(fourier.transform(call, [x], length, bins))
        kernel = waves(length, bins, length, 1)[:, 0] * (np.ones(length) if window is None else window)[:, None]
        weights = np.asarray(kernel.reshape(1, length, 1, 2 * bins), np.float32)
        image = call.one(Reshape((1, size + 2 * half, 1)), x)
        made = call.one(Conv2D((1, hop)), image, kernel=call.constant("windowed waves", lambda: weights))
        made = call.one(Reshape((frames, 2 * bins)), made)
        return fourier.part(call, made, 0, bins), fourier.part(call, made, bins, bins)


def _istft(call: Call) -> str:
    """A transposed convolution along time adds up what each frame is transformed back to."""
    found, parts = options(call), _complex(call)
    *lead, frames, bins = call.builder.shape(parts[0]) if len(call.builder.shape(parts[0])) > 1 else (0, 0)
    length, hop = found.integer("fft_length"), found.integer("sequence_stride")
    if bins != length // 2 + 1 or 2 * length * bins > BACK:
        shape = call.builder.shape(parts[0])
        raise call.config.error(f"it adds up {shape} of transforms of {length} points.", OTHERWISE)
    window, whole = _window(call, found, length), length + hop * (frames - 1)
    begin = length // 2 if found.flag("center", True) else 0
    end = begin + found.integer("length") if found.get("length") is not None else whole - begin
    count = min(end, whole) - begin
    if count < 1:
        raise call.config.error("it makes an empty signal.")
    weights = _back(bins, length) * (1.0 if window is None else _balanced(call, window, hop))
    kernel = np.ascontiguousarray(weights.T.reshape(1, length, 1, 2 * bins), np.float32)
    with call.builder.along(tuple(lead)):
        x = call.one(Reshape((1, frames, 2 * bins)), call.one(Concatenate(1), *parts))
        op = Conv2DTranspose((1, count), (1, hop), (1, 1), (0, begin))
        made = call.one(op, x, kernel=call.constant("waves back", lambda: kernel))
        return call.one(Reshape((count,)), made)


def _balanced(call: Call, window: Array, hop: int) -> Array:
    """The window over the sum of the squares of all that overlap, so that frames add up to the signal."""
    squares = np.square(window)
    squares = np.pad(squares, (0, -squares.size % hop)).reshape(-1, hop).sum(0)
    sums = np.tile(squares, -(-window.size // hop))[: window.size]
    if not (sums > 0).all():
        raise call.config.error(f"its windows, {hop} apart, leave gaps.", "Use a smaller sequence_stride.")
    return np.asarray(window / sums)


def _extracted(call: Call) -> str:
    found, (*lead, size) = options(call), _shape(call, call.input)
    length, hop = found.integer("sequence_length"), found.integer("sequence_stride")
    if length > size:
        raise call.config.error(f"its sequences of {length} do not fit into {size}.")
    if prod(lead) * length * (size // hop) > 1 << 24:
        raise call.config.error("its output is too large.")
    with call.builder.along(tuple(lead)):
        return fourier.framed(call, call.input, length, hop)


_FRAMES = ("sequence_length", "sequence_stride", "fft_length", "window", "center")
OPERATIONS: dict[str, Operation] = {
    "extract_sequences": Operation(_extracted, ("sequence_length", "sequence_stride"), whole=True),
    "fft": Operation(_fft),
    "fft2": Operation(partial(_of_planes, inverse=False)),
    "ifft2": Operation(partial(_of_planes, inverse=True)),
    "irfft": Operation(_irfft, ("fft_length",)),
    "istft": Operation(_istft, (*_FRAMES, "length")),
    "rfft": Operation(_rfft, ("fft_length",)),
    "stft": Operation(_stft, _FRAMES),
}
