"""DFT and STFT.

Complex numbers are a last axis of two. A short STFT is one convolution along time, as Keras' STFTSpectrogram is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nnbuild.frontend.fourier import LONGEST, WINDOWED, factor, is_direct, rotations_of_pairs, waves
from nnbuild.frontend.onnx.arithmetic import combined
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.convolution import images, pixels
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, padded, part
from nnbuild.frontend.onnx.frames import framed
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.model.graph import Array
from nnbuild.model.views import transposed
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.layout import Value


def dft(call: Call) -> None:
    x = call.real(0)
    rank, inverse, onesided = len(x.shape), bool(call.integer("inverse")), bool(call.integer("onesided"))
    named = call.whole_numbers(2)[0] if call.given(2) else call.integer("axis", 1) if call.opset < 20 else -2
    axis, parts = call.axis(named, rank), x.shape[-1]
    call.expect(
        axis < rank - 1 and parts in (1, 2), f"its input {list(x.shape)} is not a signal with a last axis of 1 or 2."
    )
    size, back = x.shape[axis], inverse and onesided
    length = call.whole_numbers(1)[0] if call.given(1) else 2 * (size - 1) if back else size
    _within(call, length)
    call.expect(not onesided or parts == (2 if back else 1), "half of a spectrum stands for that of a real signal.")
    order = [*(i for i in range(rank) if i not in (axis, rank - 1)), axis, rank - 1]
    x = replace(x, view=transposed(x.view, order))
    if back:
        made = transform(call, _mirrored(call, x, length), length, length, inverse)
        made = part(call, made, [*every(made.shape[:-1]), (0, 1, 1)])
    else:
        made = transform(call, x, length, length // 2 + 1 if onesided else length, inverse)
    call.put(replace(made, view=transposed(made.view, [order.index(i) for i in range(rank)])))


def _within(call: Call, length: int) -> None:
    call.expect(0 < length <= LONGEST, f"its transform has {length} points.", "nnbuild computes 1 to 65,536.")


def _mirrored(call: Call, x: Value, length: int) -> Value:
    """The whole spectrum of a real signal from its first half, whose first and middle number count as real."""
    bins, half = length // 2 + 1, (length - 1) // 2
    x = _long(call, x, bins)
    signs = np.ones((bins, 2), np.float32)
    signs[[0, *([bins - 1] if length % 2 == 0 else [])], 1] = 0
    x = combined(call, "multiply", x, signs)
    if not half:
        return x
    rest = part(call, x, [*every(x.shape[:-2]), (half, -1, half), (0, 1, 2)])
    return joined(call, [x, combined(call, "multiply", rest, np.array([1, -1], np.float32))], len(x.shape) - 2)


def _long(call: Call, x: Value, length: int) -> Value:
    """The first numbers of a signal [..., size, parts], with zeros behind its end."""
    around = [(0, 0)] * len(x.shape)
    around[-2] = (0, length - x.shape[-2])
    return padded(call, x, around, "constant", 0.0)


def transform(call: Call, x: Value, length: int, outs: int, inverse: bool) -> Value:
    """The first `outs` numbers of the transform of a signal [..., size, parts], as [..., outs, 2]."""
    lead, (size, parts) = x.shape[:-2], x.shape[-2:]
    if is_direct(size, outs, length, parts):
        size = min(size, length)
        call.within_tables(size * parts * outs * 2)
        x = as_shape(call, _long(call, x, size), (*lead, size * parts))
        made = _product(call, x, waves(size, outs, length, parts, inverse))
        return _turned(as_shape(call, made, (*lead, 2, outs)))
    return _by_factors(call, _long(call, x, length), factor(length), outs, inverse)


def _turned(x: Value) -> Value:
    """The last two axes in the other order."""
    rank = len(x.shape)
    return replace(x, view=transposed(x.view, [*range(rank - 2), rank - 1, rank - 2]))


def _by_factors(call: Call, x: Value, first: int, outs: int, inverse: bool) -> Value:
    lead, (length, parts) = x.shape[:-2], x.shape[-2:]
    second, count, rank = length // first, -(-outs // first), len(lead)
    call.within_tables(4 * second * second)
    x = as_shape(call, x, (*lead, first, second, parts))
    x = replace(x, view=transposed(x.view, [*range(rank), rank + 1, rank, rank + 2]))
    x = as_shape(call, x, (*lead, second, first * parts))
    x = as_shape(call, _product(call, x, waves(first, first, first, parts, inverse)), (*lead, second, 2, first))
    x = _rotated(call, x, length, inverse)
    x = replace(x, view=transposed(x.view, [*range(rank), rank + 2, rank, rank + 1]))
    x = as_shape(call, x, (*lead, first, second * 2))
    x = as_shape(call, _product(call, x, waves(second, count, second, 2, inverse)), (*lead, first, 2, count))
    x = replace(x, view=transposed(x.view, [*range(rank), rank + 2, rank, rank + 1]))
    x = as_shape(call, x, (*lead, count * first, 2))
    return part(call, x, [*every(lead), (0, 1, outs), (0, 1, 2)])


def _rotated(call: Call, x: Value, length: int, inverse: bool) -> Value:
    """[..., j, 2, k] times the rotation by j * k steps of the whole length."""
    steps, _, count = x.shape[-3:]
    straight, across = rotations_of_pairs(steps, count, length, inverse)
    other = part(call, x, [*every(x.shape[:-2]), (1, -1, 2), (0, 1, count)])
    return combined(call, "add", combined(call, "multiply", x, straight), combined(call, "multiply", other, across))


def _product(call: Call, x: Value, matrix: Array) -> Value:
    """The last axis, a signal's parts side by side, times waves."""
    flat = matrix.reshape(-1, matrix.shape[-1])
    return dense(call, Mode((x,), FLOAT), x, np.ascontiguousarray(flat, np.float32))


def stft(call: Call) -> None:
    x, step, onesided = call.real(0), call.whole_numbers(1)[0], bool(call.integer("onesided", 1))
    parts = x.shape[-1] if len(x.shape) == 3 else 1
    call.expect(len(x.shape) in (2, 3) and parts in (1, 2), f"its signal {list(x.shape)} is not [batch, time, 1 or 2].")
    batch, size = x.shape[:2]
    window = call.weights(2) if call.given(2) else None
    length = call.whole_numbers(3)[0] if call.given(3) else size if window is None else window.size
    _within(call, length)
    call.expect(step > 0 and length <= size, f"its frames of {length}, {step} apart, do not fit in {size} numbers.")
    call.expect(window is None or window.shape == (length,), f"its window has not {length} numbers.")
    call.expect(not onesided or parts == 1, "half of a spectrum stands for that of a real signal.")
    outs, frames = length // 2 + 1 if onesided else length, (size - length) // step + 1
    if length * parts * outs * 2 > WINDOWED:
        x = framed(call, as_shape(call, x, (batch, size, parts)), 1, length, step, frames)
        x = x if window is None else combined(call, "multiply", x, window[:, None])
        call.put(transform(call, x, length, outs, False))
        return
    kernel = waves(length, outs, length, parts, False).reshape(1, length, parts, 2 * outs)
    kernel = kernel if window is None else kernel * window[:, None, None]
    image = _turned(as_shape(call, x, (batch, size, parts)))
    _, name, _, outer = images(call, image)
    held = {"kernel": np.asarray(kernel, np.float32)}
    made = call.of(call.add(Conv2D((1, step), (1, 1), ((0, 0), (0, 0))), [name], held, FLOAT, outer), (1,))
    made = replace(made, view=pixels((batch, 2 * outs, frames)))
    made = as_shape(call, made, (batch, 2, outs, frames))
    call.put(replace(made, view=transposed(made.view, (0, 3, 2, 1))))


OPERATORS: dict[str, Callable[[Call], None]] = {"DFT": dft, "STFT": stft}
