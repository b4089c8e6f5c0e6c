"""Spectra: complex numbers are two tensors, their real and their imaginary parts.

Operators of complex tensors are rewritten as operators of these parts before they are read; the transform is products
by constant waves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.fourier import LONGEST, factor, is_direct, part_by_part, rotations_of_pairs, waves
from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.records import Operator, Tensor
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.pad import Pad
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

COMPLEX = "COMPLEX64"
PARTS = 8
"""The places of what is made of one complex tensor: its two parts, and steps on the way to them."""
BOTH = ("RFFT2D", "COMPLEX_ABS")
EITHER = {"REAL": 0, "CAST": 0, "SHAPE": 0, "RANK": 0, "IMAG": 1}
"""Operators of one part: a cast to real numbers drops the imaginary one."""
NO_SPECTRUM = "its tensors are no complex numbers and floats."
EACH = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
"""Operators that compute both parts alike."""


def is_complex(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == COMPLEX


def refuse_complex(tensor: Tensor) -> None:
    if is_complex(tensor):
        raise tensor.error(
            "it is an output of complex numbers.", "End the model with tf.abs, or with tf.math.real and tf.math.imag."
        )


def in_floats(operator: Operator) -> tuple[Operator, ...]:
    """The operators of floats that an operator of complex tensors stands for; any other one stays."""
    if not any(is_complex(tensor) for tensor in (*operator.inputs, *operator.outputs)):
        return (operator,)
    if operator.kind in BOTH:
        inputs = [part for tensor in operator.inputs for part in _parts(tensor)]
        outputs = [part for tensor in operator.outputs for part in _parts(tensor)]
        return (replace(operator, inputs=tuple(inputs), outputs=tuple(part for part in outputs if part is not None)),)
    if operator.kind in EITHER and not any(map(is_complex, operator.outputs)):
        read = replace(operator, kind="REAL") if operator.kind == "CAST" else operator
        return (_of_part(read, EITHER[operator.kind]),)
    if operator.kind in EACH:
        return tuple(_of_part(operator, place) for place in (0, 1))
    places = len(operator.inputs), len(operator.outputs)
    if operator.kind == "MUL" and places == (2, 1) and all(map(is_complex, (*operator.inputs, *operator.outputs))):
        return _product(operator)
    raise operator.error(
        "it works on complex numbers, of which nnbuild computes products, magnitudes and parts.",
        "Take tf.abs, tf.math.real or tf.math.imag of the spectrum before it.",
    )


def _parts(tensor: Tensor | None) -> tuple[Tensor | None, ...]:
    return (part(tensor, 0), part(tensor, 1)) if tensor is not None and is_complex(tensor) else (tensor,)


def part(tensor: Tensor, place: int) -> Tensor:
    """The real part keeps the tensor's number, others get negative ones that no file has."""
    index = tensor.index if place == 0 else -(tensor.index * PARTS + place)
    name = tensor.name if place == 0 else f"{tensor.name}/{'imaginary' if place == 1 else f'step {place}'}"
    data = tensor.data
    if data is not None:
        if tensor.is_sparse or len(data) != 8 * prod(tensor.shape):
            raise tensor.error(f"it holds {len(data)} bytes, which is not the size of complex {list(tensor.shape)}.")
        data = np.ascontiguousarray(np.asarray(data).reshape(-1, 2, 4)[:, place]).reshape(-1)
    return replace(tensor, index=index, name=name, dtype="float32", data=data, quantization=None)


def _of_part(operator: Operator, place: int) -> Operator:
    inputs = tuple(part(t, place) if t is not None and is_complex(t) else t for t in operator.inputs)
    outputs = tuple(part(t, place) if is_complex(t) else t for t in operator.outputs)
    return replace(operator, inputs=inputs, outputs=outputs)


def _product(operator: Operator) -> tuple[Operator, ...]:
    """(a + bi) (c + di) = (ac - bd) + (ad + bc) i"""
    (out,), (left, right) = operator.outputs, operator.inputs
    assert left is not None and right is not None
    made = []
    for place, (first, second, kind) in enumerate((((0, 0), (1, 1), "SUB"), ((0, 1), (1, 0), "ADD"))):
        steps = [part(replace(out, data=None), 2 + 2 * place + i) for i in (0, 1)]
        for step, (a, b) in zip(steps, (first, second), strict=True):
            made.append(replace(operator, inputs=(part(left, a), part(right, b)), outputs=(step,)))
        made.append(
            replace(
                operator, kind=kind, inputs=tuple(steps), outputs=(part(out, place),), options_kind="NONE", options=None
            )
        )
    return tuple(made)


def rfft2d(call: Call) -> None:
    """The last axis, and then the one before it, padded or cut to the lengths given; half of the last one's bins."""
    whole, lengths = call.whole(0), call.integers(1)
    call.expect(call.is_float(), NO_SPECTRUM)
    call.expect(len(whole) >= 2 and len(lengths) == 2, f"it transforms {list(whole)} by {list(lengths)} points.")
    call.expect(
        all(0 < n <= LONGEST for n in lengths),
        f"its transforms have {lengths[0]} and {lengths[1]} points.",
        "nnbuild computes 1 to 65,536.",
    )
    x, _ = call.view(0, len(whole) < 3)
    shape, (rows, length) = call.shape(x), lengths
    x = fitted(call, x, (*shape[:-2], rows, min(shape[-1], length)))
    lead, bins = shape[:-2], length // 2 + 1
    x = transform(call, call.seen(x, (*lead, rows, 1, call.shape(x)[-1])), length, bins)
    if rows > 1:
        x = swapped(call, x, 3, (2, 1, 0))
        x = swapped(call, transform(call, x, rows, rows), 3, (2, 1, 0))
    for place in (0, 1):
        begins = (0,) * (len(lead) + 1) + (place, 0)
        half = call.add(Slice(begins, (1,) * len(begins), (*lead, rows, 1, bins)), [x])
        call.done(call.seen(half, (*lead, rows, bins)), place)


def fitted(call: Call, x: str, shape: Shape) -> str:
    """Cut to a shape, or with zeros behind its end."""
    known = call.shape(x)
    kept = tuple(min(n, m) for n, m in zip(known, shape, strict=True))
    if kept != known:
        x = call.add(Slice((0,) * len(known), (1,) * len(known), kept), [x])
    if kept == shape:
        return x
    return call.add(Pad(tuple((0, n - m) for n, m in zip(shape, kept, strict=True))), [x])


def swapped(call: Call, x: str, count: int, order: Shape) -> str:
    """With its last `count` axes in another order."""
    before = len(call.shape(x)) - count
    return call.add(Transpose((*range(before), *(before + i for i in order))), [x])


OF_FACTORS = "Use a power of 2."
TABLE = 1 << 24
"""The largest matrix of waves."""


def transform(call: Call, x: str, length: int, outs: int) -> str:
    """From signals [..., parts, size] to the first bins of their transforms, [..., 2, outs]."""
    *lead, parts, size = call.shape(x)
    if is_direct(size, outs, length, parts):
        call.expect(size * parts * outs * 2 <= TABLE, f"its transform of {length} points has no factors.", OF_FACTORS)
        made = _times(call, call.seen(x, (*lead, parts * size)), waves(size, outs, length, parts))
        return call.seen(made, (*lead, 2, outs))
    x, first = fitted(call, x, (*lead, parts, length)), factor(length)
    second, count = length // first, -(-outs // first)
    x = swapped(call, call.seen(x, (*lead, parts, first, second)), 3, (2, 0, 1))
    x = _times(call, call.seen(x, (*lead, second, parts * first)), waves(first, first, first, parts))
    x = _rotated(call, call.seen(x, (*lead, second, 2, first)), length)
    x = swapped(call, x, 3, (2, 1, 0))
    x = _times(call, call.seen(x, (*lead, first, 2 * second)), waves(second, count, second, 2))
    x = swapped(call, call.seen(x, (*lead, first, 2, count)), 3, (1, 2, 0))
    return fitted(call, call.seen(x, (*lead, 2, count * first)), (*lead, 2, outs))


def _times(call: Call, x: str, matrix: Array) -> str:
    """The last axis, a signal's parts one after the other, times waves."""
    return call.add(Dense(), [x], {"kernel": held(call, "waves", part_by_part(matrix))})


def held(call: Call, role: str, values: Array) -> str:
    data = np.ascontiguousarray(values, np.float32)
    return call.assembly.constant(call.operator, f"{call.layer}/{role}", data, None)


def _rotated(call: Call, x: str, length: int) -> str:
    *lead, steps, _, count = call.shape(x)
    straight, across = rotations_of_pairs(steps, count, length)
    begins = (0,) * len(lead) + (0, 1, 0)
    other = call.add(Slice(begins, (*(1,) * len(lead), 1, -1, 1), call.shape(x)), [x])
    sides = (
        call.add(Binary("multiply"), [name], {"right": held(call, role, values)})
        for name, role, values in ((x, "turn", straight), (other, "other turn", across))
    )
    return call.add(Binary("add"), list(sides))


def magnitude(call: Call) -> None:
    call.expect(call.is_float(), NO_SPECTRUM)
    squares = [call.add(Activation("square"), [name]) for name in call.data_inputs(0, 1)]
    call.done(call.add(Activation("sqrt"), [call.add(Binary("add"), squares)]))


def same(call: Call) -> None:
    """A part of complex numbers is a tensor already."""
    call.expect(call.is_float(), NO_SPECTRUM)
    (name,) = call.data_inputs(0)
    call.done(call.add(Reshape(call.shape(name)), [name]))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "RFFT2D": rfft2d,
    "COMPLEX_ABS": magnitude,
    "REAL": same,
    "IMAG": same,
}
