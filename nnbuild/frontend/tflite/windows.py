"""Window operators composed of two-axis ones, and of slices of the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.linear import image, is_same, padding, pair
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.static_indexing import alone, filled, given, spaced
from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import limits
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Clamp, Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.slice import Slice
from nnbuild.ops.whole import Whole
from nnbuild.ops.windows import same_padding, spread

FLOAT = "Convert it to float32."
THREE = "Conv3DOptions"


def l2_pool(call: Call) -> None:
    """The root of the mean of the squares."""
    kind = "Pool2DOptions"
    x, shape, outer = image(call, 0)
    call.expect(call.is_float(), "nnbuild supports L2_POOL_2D only in float32.", FLOAT)
    window, strides = pair(call, kind, "FilterHeight", "FilterWidth", 0), pair(call, kind, "StrideH", "StrideW", 0)
    pool = Pool2D("average", window, strides, padding(call, kind, shape, window, strides))
    squares = call.add(Activation("square"), [x])
    roots = call.add(Activation("sqrt"), [call.add(pool, [squares], outer=outer)])
    call.done(bounded(call, roots, call.clamp(kind)))


def bounded(call: Call, name: str, clamp: Clamp) -> str:
    """A fused activation, as a separate operation."""
    if clamp == NO_CLAMP:
        return name
    return call.add(Activation("clamp", clamp.ends), [name])


def conv_3d(call: Call) -> None:
    """[depth, rows, columns, in, out]"""
    x, shape = _volume(call, 0)
    kernel = call.weights(1)
    call.expect(kernel.ndim == 5 and kernel.shape[3] == shape[3], f"its weights {list(kernel.shape)} do not fit.")
    strides, dilation = _triple(call, "Stride"), _triple(call, "Dilation", "Factor")
    around: list[Pair] = [(0, 0)] * 3
    if is_same(call, THREE):
        around = [same_padding(shape[i], kernel.shape[i], strides[i], dilation[i]) for i in range(3)]
    call.done(_convolved(call, x, kernel, 2, strides, dilation, around))


def conv_3d_transpose(call: Call) -> None:
    """A convolution of the dilated input with the reversed kernel."""
    x, shape = _volume(call, 2)
    stored, size = call.weights(1), call.integers(0)  # [depth, rows, columns, out, in]
    call.expect(stored.ndim == 5 and stored.shape[4] == shape[3], f"its weights {list(stored.shape)} do not fit.")
    call.expect(len(size) == 5 and size[0] == 1 and min(size) > 0, f"its output {list(size)} is empty.")
    strides, dilation = _triple(call, "Stride"), _triple(call, "Dilation", "Factor")
    reach = [spread(stored.shape[i], dilation[i]) for i in range(3)]
    begins = [0] * 3
    if is_same(call, THREE):
        begins = [same_padding(size[1 + i], stored.shape[i], strides[i], dilation[i])[0] for i in range(3)]
    wide = (*(size[1 + i] + reach[i] - 1 for i in range(3)), shape[3])
    places = spaced(call, shape, wide, (*strides, 1), (*(reach[i] - 1 - begins[i] for i in range(3)), 0))
    x = filled(call, call.seen(x, (prod(shape),)), places, wide)
    kernel = np.flip(stored, (0, 1, 2)).transpose(0, 1, 2, 4, 3)
    call.done(_convolved(call, x, kernel, 3, (1, 1, 1), dilation, [(0, 0)] * 3))


def _volume(call: Call, index: int) -> tuple[str, Shape]:
    alone(call)
    whole = call.whole(index)
    call.expect(call.is_float(), f"nnbuild supports {call.operator.kind} only in float32.", FLOAT)
    call.expect(len(whole) == 5 and whole[0] == 1, f"its input has the shape {list(whole)}.", CONVERT_AGAIN)
    (name,) = call.data_inputs(index)
    return call.seen(name, whole[1:]), whole[1:]


def _triple(call: Call, what: str, end: str = "") -> tuple[int, int, int]:
    d, h, w = (int(call.option(THREE, f"{what}{axis}{end}", 1)) for axis in "DHW")
    call.expect(min(d, h, w) > 0 and max(d, h, w) < 2**15, f"its {what} is {(d, h, w)}.")
    return d, h, w


def _convolved(
    call: Call, x: str, kernel: Array, bias_at: int, strides: Shape, dilation: Shape, around: Sequence[Pair]
) -> str:
    """The depth slices become channels of a two-axis convolution."""
    deep, rows, columns, channels, out = kernel.shape
    x = call.add(Pad((around[0], (0, 0), (0, 0), (0, 0))), [x])
    depth, height, width, _ = call.shape(x)
    places = (depth - spread(deep, dilation[0])) // strides[0] + 1
    call.expect(places > 0 and deep <= 256, f"its window of {deep} does not fit a depth of {depth}.")
    size, steps = (places, height, width, channels), (strides[0], 1, 1, 1)
    slices = [call.add(Slice((i * dilation[0], 0, 0, 0), steps, size), [x]) for i in range(deep)]
    joined = slices[0] if deep == 1 else call.add(Concatenate(3), slices)
    flat = kernel.transpose(1, 2, 0, 3, 4).reshape(rows, columns, deep * channels, out)
    constants = {"kernel": call.constant(1, flat)}
    if call.given(bias_at):
        added = call.weights(bias_at)
        call.expect(added.size == out, f"its bias has the shape {list(added.shape)} for {out} channels.")
        constants["bias"] = call.constant(bias_at, added.reshape(-1))
    op = Conv2D((strides[1], strides[2]), (dilation[1], dilation[2]), (around[1], around[2]), clamp=call.clamp(THREE))
    return call.add(op, [joined], constants, outer=(places,))


WINDOW_FUNCTIONS = {1: "add", 2: "multiply", 3: "minimum", 4: "maximum", 5: "and", 6: "or"}
"""Functions by their numbers in the schema."""
Window = tuple[Shape, Shape, Shape]
"""(sizes, strides, dilation) along each axis."""


def reduce_window(call: Call) -> None:
    code = int(call.option("ReduceWindowOptions", "ReduceFunction", 0))
    call.expect(code in WINDOW_FUNCTIONS, f"its function is number {code}.")
    window = call.integers(2), call.integers(3), call.integers(4)
    alone(call)
    reduced(call, call.seen(given(call, 0), call.whole(0)), WINDOW_FUNCTIONS[code], window)


def reduced(call: Call, name: str, function: str, window: Window) -> None:
    """Each element of a window is a slice of the input; the slices are combined one by one."""
    (sizes, strides, dilation), shape = window, call.shape(name)
    fits = {len(shape)} == {len(one) for one in window} and min((*sizes, *strides, *dilation)) > 0
    call.expect(fits and prod(sizes) <= MOST_TAPS, f"its window {list(sizes)} does not fit {list(shape)}.")
    counts = tuple((n - spread(k, d)) // s + 1 for n, k, s, d in zip(shape, sizes, strides, dilation, strict=True))
    call.expect(min(counts) > 0, "its window is larger than its input.")
    plain = call.is_float() or call.like().is_whole
    call.expect(plain and (call.is_float() or call.like().dtype == "int32" or function in ("and", "or")), ODD_TYPE)
    op = Binary(function) if call.is_float() and function not in ("and", "or") else Whole(function)
    total = ""
    for at in product(*(range(k) for k in sizes)):
        begins = tuple(i * d for i, d in zip(at, dilation, strict=True))
        part = call.add(Slice(begins, strides, counts), [name])
        total = call.add(op, [total, part]) if total else part
    call.reshaped(_begun(call, op, total), whole=counts)


ODD_TYPE = "nnbuild supports it on floats, 32-bit integers and booleans."
MOST_TAPS = 1024


def _begun(call: Call, op: Binary | Whole, total: str) -> str:
    """Combines the initial value of the sums, products or extremes, where it matters."""
    values = call.stored(1).values()
    call.expect(call.is_constant(1) and values.size == 1, "its initial value is not a number.", CONVERT_AGAIN)
    value, dtype = values.reshape(-1)[0], call.like().dtype
    lowest, highest = (np.finfo(np.float32).min, np.finfo(np.float32).max) if call.is_float() else limits(dtype)
    without = {
        "add": value == 0,
        "multiply": value == 1,
        "maximum": value <= lowest,
        "minimum": value >= highest,
        "and": value != 0,
        "or": value == 0,
    }
    if without[op.function]:
        return total
    call.expect(bool(np.isfinite(value)), f"its initial value is {value}.")
    held = np.asarray([value]).astype(dtype)
    return call.add(op, [total], {"right": call.constant(1, held, call.like().quant)})


OPERATORS: dict[str, Callable[[Call], None]] = {
    "L2_POOL_2D": l2_pool,
    "REDUCE_WINDOW": reduce_window,
    "CONV_3D": conv_3d,
    "CONV_3D_TRANSPOSE": conv_3d_transpose,
}
