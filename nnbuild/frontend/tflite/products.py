"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nnbuild.frontend.tflite.call import BATCH_ONE, Call
from nnbuild.frontend.tflite.linear import filter_quant, fully_connected, weighted
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.model.graph import Shape
from nnbuild.numeric.multiplier import SUM_SCALE_LIMIT
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.transpose import Transpose

_KIND = "BatchMatMulOptions"


def batch_matmul(call: Call) -> None:
    """A constant matrix on the right becomes a convolution with one tap, whose sums are scaled by the same rule."""
    call.expect(call.batch == 1, "it multiplies matrices of a batch.", BATCH_ONE)
    turned = bool(call.option(_KIND, "AdjY", False))
    left = _matrices(call, 0, bool(call.option(_KIND, "AdjX", False)))
    if _is_kernel(call):
        _by_constant(call, left, turned)
        return
    right = _matrices(call, 1, False)
    before = _common(call, call.shape(left)[:-2], call.shape(right)[:-2])
    made = _product(call, [_repeated(call, name, before) for name in (left, right)], turned)
    call.reshaped(made, whole=_whole(call, call.shape(made)))


def _is_kernel(call: Call) -> bool:
    """Whether the right side is one constant matrix, without a zero point."""
    form = call.stored(1).quantization
    return call.is_constant(1) and prod(call.whole(1)[:-2]) == 1 and not (form and any(form.zero_points))


def _product(call: Call, names: list[str], turned: bool) -> str:
    own, other, out = (call.tensor(names[0]).quant, call.tensor(names[1]).quant, call.like().quant)
    if own is not None and other is not None and out is not None:
        call.ratio(own.scale * other.scale / out.scale, SUM_SCALE_LIMIT)
        depth = call.shape(names[0])[-1]
        call.expect(depth * 255 * 255 < 2**31 or call.output().dtype == "int16", f"its sums are of {depth} products.")
    return call.add(MatMul(turned), names)


def _common(call: Call, left: Shape, right: Shape) -> Shape:
    """The shape to which both are broadcast."""
    fits = all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False))
    call.expect(fits, f"its operands hold {list(left)} and {list(right)} matrices.")
    return tuple(np.broadcast_shapes(left, right))


def _whole(call: Call, made: Shape) -> Shape:
    rank = max(len(call.whole(0)), len(call.whole(1)))
    return (1,) * (rank - len(made)) + made[max(0, len(made) - rank) :]


def _matrices(call: Call, index: int, transposed: bool) -> str:
    """An operand with all axes except a batch of one."""
    (name,), whole = call.data_inputs(index), call.whole(index)
    call.expect(len(whole) >= 2, f"its input {index} has the shape {list(whole)}.")
    shape = whole[1:] if len(whole) > 2 and whole[0] == 1 else whole
    name = call.seen(name, shape)
    if not transposed:
        return name
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return call.add(Transpose(order), [name], like=call.tensor(name))


def _repeated(call: Call, name: str, before: Shape) -> str:
    own = call.shape(name)
    own = (1,) * (len(before) + 2 - len(own)) + own
    name = call.seen(name, own)
    times = tuple(b // n for b, n in zip(before, own, strict=False))
    return name if set(times) <= {1} else call.add(Repeat((*times, 1, 1)), [name], like=call.tensor(name))


def dense(call: Call) -> None:
    """FULLY_CONNECTED; with a run-time kernel it is a matrix product, scaled by the same rule."""
    if call.is_constant(1):
        fully_connected(call)
        return
    call.expect(call.batch == 1, "it multiplies matrices of a batch.", BATCH_ONE)
    clamp = call.clamp("FullyConnectedOptions")
    call.expect(not call.given(2), "it has a bias on a product of two tensors.", CONVERT_AGAIN)
    call.expect(
        call.is_float() or clamp == NO_CLAMP, "it has an activation on a product of two tensors.", CONVERT_AGAIN
    )
    right, left = _matrices(call, 1, False), call.value(0)
    depth, out = call.shape(right)[-1], call.shape(right)[-2]
    call.same_type([left, right])
    call.expect(len(call.shape(right)) == 2 and prod(call.shape(left)) % depth == 0, f"its rows are not of {depth}.")
    left = call.seen(left, (prod(call.shape(left)) // depth, depth))
    made = _product(call, [left, right], True)
    if clamp != NO_CLAMP:
        made = call.add(Activation("clamp", clamp.ends), [made])
    kept = bool(call.option("FullyConnectedOptions", "KeepNumDims", False))
    call.reshaped(made, whole=(*call.whole(0)[:-1], out) if kept else call.shape(made))


def _by_constant(call: Call, left: str, turned: bool) -> None:
    values = call.weights(1)
    call.expect(values.ndim >= 2, f"its constant has the shape {list(values.shape)}.")
    depth, columns = values.shape[-2:] if not turned else values.shape[:-3:-1]
    shape = call.shape(left)
    call.expect(shape[-1] == depth, f"its operands {list(shape)} and {list(values.shape)} do not match.")
    kernel = values.reshape(values.shape[-2:])
    kernel = (kernel.T if turned else kernel).reshape(1, 1, depth, columns)
    rows = call.seen(left, (1, prod(shape[:-1]), depth))
    made = weighted(call, Conv2D(clamp=Clamp()), rows, (1, 2), kernel, filter_quant(call, 1, columns, 3), ())
    call.reshaped(made, whole=_whole(call, (*shape[:-1], columns)))


OPERATORS: dict[str, Callable[[Call], None]] = {"BATCH_MATMUL": batch_matmul, "FULLY_CONNECTED": dense}
