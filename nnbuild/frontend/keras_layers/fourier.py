"""Fourier transforms of the last axis, frames of a signal, and windows over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd

import numpy as np

from nnbuild.frontend.fourier import LONGEST, factor, is_direct, part_by_part, rotations, waves
from nnbuild.frontend.keras_layers.base import Call
from nnbuild.model.graph import Array
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.pad import Pad
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

WINDOWS = {"hann": 0.5, "hamming": 0.54}
MOST_PARTS = 256
LARGEST = 1 << 21
"""The most numbers of a matrix."""
POWER = "Use a length that is a power of 2."


def window_of(shape: str, within: int, length: int) -> Array:
    """The window, centred in a frame."""
    rise = WINDOWS[shape]
    found = rise - (1 - rise) * np.cos(2 * np.pi * np.arange(within) / within)
    return centred(found, length)


def centred(window: Array, length: int) -> Array:
    before = (length - window.size) // 2
    return np.pad(window, (before, length - window.size - before))


def mirrored(call: Call, x: str, half: int) -> str:
    """A signal [time] with as many numbers mirrored at either end."""
    (size,) = call.builder.shape(x)
    before, after = (call.one(Slice((begin,), (-1,), (half,)), x) for begin in (half, size - 2)) if half else (x, x)
    return call.one(Concatenate(0), before, x, after) if half else x


def framed(call: Call, x: str, length: int, hop: int) -> str:
    """[frames, length] of a signal [time]; each part of the frames is one slice."""
    (size,), step = call.builder.shape(x), gcd(length, hop)
    count = 1 + (size - length) // hop
    rows = ((count - 1) * hop + length) // step
    if length // step > MOST_PARTS:
        raise call.config.error(f"its stride of {hop} and its window of {length} have no large part in common.")
    x = call.one(Reshape((rows, step)), call.one(Slice((0,), (1,), (rows * step,)), x))
    cuts = [call.one(Slice((i, 0), (hop // step, 1), (count, step)), x) for i in range(length // step)]
    return cuts[0] if len(cuts) == 1 else call.one(Concatenate(1), *cuts)


def part(call: Call, x: str, begin: int, count: int) -> str:
    """A part of the last axis."""
    *lead, size = call.builder.shape(x)
    if (begin, count) == (0, size):
        return x
    return call.one(Slice((*(0 for _ in lead), begin), (1,) * (len(lead) + 1), (*lead, count)), x)


def fitted(call: Call, x: str, size: int) -> str:
    """The last axis cut, or with zeros behind it."""
    *lead, own = call.builder.shape(x)
    if own >= size:
        return part(call, x, 0, size)
    return call.one(Pad((*((0, 0) for _ in lead), (0, size - own))), x)


def _halves(call: Call, x: str) -> list[str]:
    size = call.builder.shape(x)[-1] // 2
    return [part(call, x, 0, size), part(call, x, size, size)]


def product(call: Call, parts: Sequence[str], role: str, matrix: Array) -> str:
    """The parts, one behind the other, times a matrix [parts * size, out]."""
    last = len(call.builder.shape(parts[0])) - 1
    x = parts[0] if len(parts) == 1 else call.one(Concatenate(last), *parts)
    return call.one(Dense(), x, kernel=call.constant(role, lambda: np.ascontiguousarray(matrix, np.float32)))


def transform(call: Call, parts: Sequence[str], length: int, outs: int, *, inverse: bool = False) -> list[str]:
    """The real and the imaginary part of the first `outs` numbers of the transform of a signal [..., time]: its real
    part, or both."""
    if length > LONGEST:
        raise call.config.error(f"its transform has {length} points.", f"Use {LONGEST} at most.")
    size, first = min(call.builder.shape(parts[0])[-1], length), factor(length)
    if is_direct(size, outs, length, len(parts)):
        if size * len(parts) * outs * 2 > LARGEST:
            raise call.config.error(f"its transform of {length} points cannot be divided.", POWER)
        parts = [fitted(call, x, size) for x in parts]
        matrix = part_by_part(waves(size, outs, length, len(parts), inverse))
        return _halves(call, product(call, parts, f"waves {size} {outs} {length} {inverse}", matrix))
    return _by_factors(call, [fitted(call, x, length) for x in parts], first, outs, inverse)


def _by_factors(call: Call, parts: Sequence[str], first: int, outs: int, inverse: bool) -> list[str]:
    *lead, length = call.builder.shape(parts[0])
    second = length // first
    count, swap = -(-outs // first), (*range(len(lead)), len(lead) + 1, len(lead))
    if 4 * second * count > LARGEST:
        raise call.config.error(f"its transform of {length} points cannot be divided well.", POWER)
    rows = [call.one(Transpose(swap), call.one(Reshape((*lead, first, second)), x)) for x in parts]
    matrix = part_by_part(waves(first, first, first, len(parts), inverse))
    real, imaginary = _halves(call, product(call, rows, f"first {length} {inverse}", matrix))
    names = [f"{name} {length} {inverse}" for name in ("turn", "other turn")]
    turn, other = (
        call.constant(name, partial(np.asarray, values, np.float32))
        for name, values in zip(names, rotations(second, first, length, inverse), strict=True)
    )

    def turned(left: str, right: str, function: str) -> str:
        sides = call.one(Binary("multiply"), left, right=turn), call.one(Binary("multiply"), right, right=other)
        return call.one(Binary(function), *sides)

    both = turned(real, imaginary, "add"), turned(imaginary, real, "subtract")
    rows = [call.one(Transpose(swap), x) for x in both]
    matrix = part_by_part(waves(second, count, second, 2, inverse))
    made = _halves(call, product(call, rows, f"second {length} {count} {inverse}", matrix))
    made = [call.one(Reshape((*lead, count * first)), call.one(Transpose(swap), x)) for x in made]
    return [part(call, x, 0, outs) for x in made]
