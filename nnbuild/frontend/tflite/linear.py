"""Convolutions and fully connected layers."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.other_arithmetic import DYNAMIC_RANGE, OVERFLOWS
from nnbuild.frontend.tflite.call import CLAMPS, LARGEST_SCALE, Call
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.model.graph import Array, Quant, Shape
from nnbuild.numeric.multiplier import SUM_SCALE_LIMIT
from nnbuild.numeric.rounding import narrowest
from nnbuild.ops.base import Attributes, Clamp, Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.windows import NO_PADDING, Padding, same_padding

BIAS_TYPES = {"int8": "int32", "int16": "int64"}
INPUT_REACH = {"int8": 255, "int16": 32768}
SUM_LIMITS = {"int8": 2.0**31, "int16": 2.0**46}
DENSE_SUM_LIMITS = {"int8": 2.0**31, "int16": 2.0**36}
DENSE_LIMIT = 16.0
RESULT_LIMIT = 2.0**30
ROUNDING = 2.0**-10
"""More than the steps of scaling err by, in steps of the result."""
CLIPPED = (
    "{!r} is constant in channels whose weights are too small for their bias, which the quantizer clipped, and change "
    "nothing: {}."
)
SMALL_SCALE = (
    "The channel's weights are nearly zero and their scale is too small for its bias, which some quantizers then "
    "clip. Make these weights zero or their scale larger and quantize again, or give the model in floats and "
    "--quantize int8."
)


def pair(call: Call, kind: str, rows: str, columns: str, default: int = 1) -> Pair:
    """Two options that start from one."""
    found = int(call.option(kind, rows, default)), int(call.option(kind, columns, default))
    call.expect(min(found) >= 1 and max(found) < 2**20, f"its {rows} and {columns} are {found[0]} and {found[1]}.")
    return found


def is_same(call: Call, kind: str) -> bool:
    code = int(call.option(kind, "Padding", 0))
    call.expect(code in (0, 1), f"its padding is number {code}.")
    return code == 0


def padding(call: Call, kind: str, sizes: Shape, kernel: Pair, strides: Pair, dilation: Pair = (1, 1)) -> Padding:
    if not is_same(call, kind):
        return NO_PADDING
    rows, columns = (same_padding(sizes[i], kernel[i], strides[i], dilation[i]) for i in (0, 1))
    return rows, columns


def image(call: Call, index: int) -> tuple[str, Shape, Shape]:
    """An input of rows, columns and channels: its name, this shape, and the axes the operation applies along."""
    (name,) = call.data_inputs(index)
    whole = call.whole(index)
    call.expect(len(whole) == 4, f"its input has the shape {list(whole)}, not [batch, rows, columns, channels].")
    outer = (whole[0],) if call.batch == 1 and whole[0] != 1 else ()
    return call.seen(name, outer + whole[1:]), whole[1:], outer


def filters(call: Call, index: int, rank: int) -> Array:
    stored = call.stored(index)
    values = call.weights(index)
    call.expect(values.ndim == rank, f"its weights have the shape {list(stored.shape)}, not {rank} axes.")
    if not call.is_float():
        call.expect(stored.dtype == "int8", f"its weights are {stored.dtype}, not int8.", CONVERT_AGAIN)
    return values


def filter_quant(call: Call, index: int, channels: int, axis: int) -> Quant | None:
    """The weights' scales, one or one per output channel; with a single scale they may have a zero point."""
    if call.is_float():
        return None
    stored = call.stored(index)
    known = stored.quantization
    if known is None:
        raise stored.error("it holds a layer's weights as integers, but has no scale.")
    if len(known.scales) not in (1, channels):
        raise stored.error(f"it has {len(known.scales)} scales for {channels} output channels.")
    if max(known.scales) > LARGEST_SCALE:
        raise stored.error(f"its scale is {max(known.scales):.6g}, above 2^28.")
    lone = len(known.scales) == 1 and -128 <= known.zero_points[0] <= 127
    if any(known.zero_points) and not lone:
        raise stored.error(
            f"its zero point is {next(filter(None, known.zero_points))}, but weights must have 0.", CONVERT_AGAIN
        )
    return Quant(known.scales, known.zero_points[0], axis if len(known.scales) > 1 else None)


def bias(call: Call, index: int, channels: int) -> Array | None:
    if not call.given(index):
        return None
    stored, values = call.stored(index), call.weights(index)
    if values.size == 1 and call.is_float():  # as the converter writes a number added behind a transposed convolution
        values = np.full(channels, values.reshape(()))
    call.expect(values.size == channels, f"its bias has the shape {list(stored.shape)} for {channels} channels.")
    if not call.is_float():
        wanted = BIAS_TYPES.get(call.output().dtype, "none")
        call.expect(
            stored.dtype == wanted,
            f"its bias is {stored.dtype}; {call.output().dtype} layers are supported with {wanted} only.",
            CONVERT_AGAIN,
        )
    return values.reshape(-1)


def weighted(
    call: Call, attributes: Attributes, x: str, roles: tuple[int, int], kernel: Array, quant: Quant | None, outer: Shape
) -> str:
    """Adds the operation with its kernel and bias, after checking that sums and scales stay within bounds."""
    weights_at, bias_at = roles
    channels = kernel.shape[2] if isinstance(attributes, Conv2DTranspose) else kernel.shape[-1]
    if isinstance(attributes, DepthwiseConv2D):
        channels = kernel.shape[2] * kernel.shape[3]
    added = bias(call, bias_at, channels)
    if call.is_float() and call.stored(weights_at).dtype.startswith("int"):
        call.assembly.unlike = DYNAMIC_RANGE
    if quant is not None:
        if added is not None and call.output().dtype == "int8":
            kernel = _without_overflow(call, attributes, x, kernel, quant, added)
        within_bounds(call, attributes, x, kernel, quant, added)
        if quant.zero_point and not isinstance(attributes, Dense):
            kernel, quant = narrowest(kernel.astype(np.int64) - quant.zero_point), replace(quant, zero_point=0)
    constants = {"kernel": call.constant(weights_at, kernel, quant)}
    if added is not None:
        constants["bias"] = call.constant(bias_at, added)
    return call.add(attributes, [x], constants, outer=outer)


def _without_overflow(call: Call, attributes: Attributes, x: str, kernel: Array, quant: Quant, added: Array) -> Array:
    """Leaves the weights out of channels whose sums overflow, and which are constant wherever they do not: those whose
    bias was clipped, as their scale is too small for it."""
    own, out = call.tensor(x).quant, call.like().quant
    if own is None or out is None:
        return kernel
    axes, alone = _summed(attributes), added.astype(np.float64)
    taps = np.abs(kernel.astype(np.float64) - quant.zero_point).sum(axis=axes).reshape(-1) * INPUT_REACH["int8"]
    low, high = np.maximum(alone - taps, -(2.0**31)), np.minimum(alone + taps, 2.0**31 - 1)
    real = own.scale / out.scale * np.asarray(quant.scales)
    same = np.floor(low * real + 0.5 - ROUNDING) == np.floor(high * real + 0.5 + ROUNDING)
    out_of = ((alone - taps < low) | (alone + taps > high)) & same
    if not out_of.any():
        return kernel
    if (seen := out_of & (real * 2.0**31 >= 0.5 - ROUNDING)).any():  # below, a sum that wraps around rounds to 0, too
        call.assembly.unlike = OVERFLOWS
        call.assembly.note(CLIPPED.format(call.output().name, ", ".join(map(str, np.flatnonzero(seen)))))
    rest = [n for i, n in enumerate(kernel.shape) if i not in axes]
    left_out = np.expand_dims(out_of.reshape(rest), axes)
    return np.where(left_out, np.array(quant.zero_point, kernel.dtype), kernel)


def _summed(attributes: Attributes) -> tuple[int, ...]:
    """The axes of a kernel over which an output's sum runs."""
    axes = {Conv2DTranspose: (0, 1, 3), DepthwiseConv2D: (0, 1), Dense: (0,)}
    return axes.get(type(attributes), (0, 1, 2))


def within_bounds(call: Call, attributes: Attributes, x: str, kernel: Array, quant: Quant, added: Array | None) -> None:
    dense = isinstance(attributes, Dense)
    dtype, own, out = call.output().dtype, call.tensor(x).quant, call.like().quant
    call.expect(dtype in SUM_LIMITS and own is not None and out is not None, f"it computes {dtype} of integers.")
    assert own is not None and out is not None
    real = own.scale / out.scale * np.asarray(quant.scales)
    call.ratio(float(real.max()), DENSE_LIMIT if dense else SUM_SCALE_LIMIT)
    limit = (DENSE_SUM_LIMITS if dense else SUM_LIMITS)[dtype]
    most = within_bits(call, kernel, quant.zero_point, added, _summed(attributes), INPUT_REACH[dtype], limit)
    if dtype == "int8":  # followed by a zero point, which 16 bits do not have
        call.ratio(float((most * real).max()), RESULT_LIMIT)


def within_bits(
    call: Call,
    weights: Array,
    zero: int,
    added: Array | None,
    axes: tuple[int, ...] = (0,),
    reach: int = INPUT_REACH["int8"],
    limit: float = SUM_LIMITS["int8"],
) -> Array:
    """Every channel's largest sum, over these axes of the weights; refuses sums that overflow the accumulator.

    The least number of a type is one: quantizers clip the biases of channels without weights to it.
    """
    taps = np.abs(weights.astype(np.float64) - zero).sum(axis=axes).reshape(-1) * reach
    alone = np.zeros(taps.shape) if added is None else added.astype(np.float64)
    sums = taps + np.abs(alone)
    beyond = (alone + taps >= limit) | (alone - taps < -limit)
    if beyond.any():
        channel = int(np.where(beyond, sums, 0).argmax())
        cause = f"its sums can reach {sums[channel]:,.0f}, above the limit of {limit:,.0f}"
        if added is not None and 2 * abs(alone[channel]) > limit:
            raise call.error(f"{cause}: the bias of channel {channel} is {added[channel]}.", SMALL_SCALE)
        raise call.error(f"{cause}.")
    return np.asarray(sums)


def conv2d(call: Call) -> None:
    kind = "Conv2DOptions"
    x, shape, outer = image(call, 0)
    stored = filters(call, 1, 4)  # [out, rows, columns, in / groups]
    out, kh, kw, depth = stored.shape
    groups, rest = divmod(shape[2], depth)
    call.expect(rest == 0, f"its weights are for groups of {depth} of its {shape[2]} channels.")
    strides = pair(call, kind, "StrideH", "StrideW")
    dilation = pair(call, kind, "DilationHFactor", "DilationWFactor")
    around = padding(call, kind, shape, (kh, kw), strides, dilation)
    attributes = Conv2D(strides, dilation, around, groups, clamp=call.clamp(kind))
    quant = filter_quant(call, 1, out, 3)
    call.done(weighted(call, attributes, x, (1, 2), stored.transpose(1, 2, 3, 0), quant, outer))


def depthwise_conv2d(call: Call) -> None:
    kind = "DepthwiseConv2DOptions"
    x, shape, outer = image(call, 0)
    stored = filters(call, 1, 4)  # [1, rows, columns, channels * multiplier]
    one, kh, kw, out = stored.shape
    multiplier, rest = divmod(out, shape[2])
    call.expect(one == 1 and rest == 0, f"its weights {list(stored.shape)} do not fit {shape[2]} channels.")
    strides = pair(call, kind, "StrideH", "StrideW")
    dilation = pair(call, kind, "DilationHFactor", "DilationWFactor")
    around = padding(call, kind, shape, (kh, kw), strides, dilation)
    attributes = DepthwiseConv2D(strides, dilation, around, clamp=call.clamp(kind))
    kernel = stored.reshape(kh, kw, shape[2], multiplier)
    call.done(weighted(call, attributes, x, (1, 2), kernel, filter_quant(call, 1, out, 3), outer))


def transpose_conv(call: Call) -> None:
    """The output's size is a constant, and the padding is that of the convolution from the output back."""
    kind = "TransposeConvOptions"
    x, _, outer = image(call, 2)
    stored = filters(call, 1, 4)  # [out, rows, columns, in]
    out, kh, kw, _ = stored.shape
    size = call.integers(0)
    call.expect(len(size) == 4 and min(size) > 0 and max(size) < 2**20, f"its output shape is {list(size)}.")
    strides = pair(call, kind, "StrideH", "StrideW")
    crop = (0, 0)
    if is_same(call, kind):
        crop = (same_padding(size[1], kh, strides[0])[0], same_padding(size[2], kw, strides[1])[0])
    attributes = Conv2DTranspose((size[1], size[2]), strides, (1, 1), crop, clamp=_late_clamp(call, kind))
    kernel = stored.transpose(1, 2, 0, 3)
    call.done(weighted(call, attributes, x, (1, 3), kernel, filter_quant(call, 1, out, 2), outer))


def _late_clamp(call: Call, kind: str) -> Clamp:
    """Its fused activation was added later than the operator, and older readers do not know it."""
    options = call.options(kind)
    return call.clamp(kind) if "FusedActivationFunction" in vars(type(options)) else CLAMPS[0]


def fully_connected(call: Call) -> None:
    kind = "FullyConnectedOptions"
    call.expect(int(call.option(kind, "WeightsFormat", 0)) == 0, "its weights are shuffled.", CONVERT_AGAIN)
    (x,) = call.data_inputs(0)
    stored = filters(call, 1, 2)  # [out, in]
    out, depth = stored.shape
    size = prod(call.shape(x))
    call.expect(size % depth == 0, f"its {size} inputs do not divide into rows of {depth}.")
    if call.shape(x)[-1] != depth:
        x = call.seen(x, (depth,) if size == depth else (size // depth, depth))
    attributes = Dense(call.clamp(kind))
    quant = filter_quant(call, 1, out, 1)
    made = weighted(call, attributes, x, (1, 2), stored.T, quant, ())
    kept = bool(call.option(kind, "KeepNumDims", False))
    call.reshaped(made, whole=(*call.whole(0)[:-1], out) if kept else (prod(call.whole(0)) // depth, out))


OPERATORS = {
    "CONV_2D": conv2d,
    "DEPTHWISE_CONV_2D": depthwise_conv2d,
    "TRANSPOSE_CONV": transpose_conv,
}
