"""Recomputes one integer operator of a `.tflite` file with `nnbuild.numeric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbuild.numeric import edge, elementwise, lstm, multiplier, real_scale, rounding, softmax, tables
from nnbuild.numeric.rounding import Ints
from tests.numeric import integer_ops as ops
from tests.numeric.tflite_graph import Operator, Tensor

Arguments = list[Ints | None]
Evaluator = Callable[[Operator, Arguments], list[Ints]]


def _given(value: Ints | None) -> Ints:
    assert value is not None
    return value


def _tensor(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _finish(op: Operator, unclamped: Ints, activation: str = "none") -> list[Ints]:
    out = op.outputs[0]
    bounds = multiplier.activation_range(activation, out.scale, out.zero, *out.limits)
    return [elementwise.clamp(unclamped, bounds).reshape(out.shape)]


def _requantized(op: Operator, acc: Ints, weights: Tensor, x: Tensor) -> Ints:
    """A convolution's output before the clamp: two roundings in 8 bits, the reduced multiplier in 16."""
    out = op.outputs[0]
    scale, shift = multiplier.quantize_multipliers(multiplier.convolution_scales(x.scale, weights.scales, out.scale))
    rule = rounding.requantize if out.bits == 8 else rounding.requantize64
    return rule(acc, scale, shift) + out.zero


def _same(op: Operator) -> bool:
    return int(op.options.Padding()) == 0


def _strides(op: Operator) -> tuple[int, int]:
    return int(op.options.StrideH()), int(op.options.StrideW())


def _dilations(op: Operator) -> tuple[int, int]:
    return int(op.options.DilationHFactor()), int(op.options.DilationWFactor())


def conv2d(op: Operator, args: Arguments) -> list[Ints]:
    x, weights = _tensor(op.inputs[0]), _tensor(op.inputs[1])
    rule = ops.integer_conv2d if op.name == "CONV_2D" else ops.integer_depthwise
    bias = args[2] if len(args) > 2 else None
    acc = rule(_given(args[0]), _given(args[1]), bias, x.zero, _strides(op), _dilations(op), _same(op))
    return _finish(op, _requantized(op, acc, weights, x), op.activation)


def transpose_conv(op: Operator, args: Arguments) -> list[Ints]:
    x, weights, out = _tensor(op.inputs[2]), _tensor(op.inputs[1]), op.outputs[0]
    bias = args[3] if len(args) > 3 else None
    size = (out.shape[1], out.shape[2])
    acc = ops.integer_transpose_conv(_given(args[2]), _given(args[1]), bias, x.zero, _strides(op), _same(op), size)
    return _finish(op, _requantized(op, acc, weights, x), op.activation)


def fully_connected(op: Operator, args: Arguments) -> list[Ints]:
    x, weights, out = _tensor(op.inputs[0]), _tensor(op.inputs[1]), op.outputs[0]
    bias = args[2] if len(args) > 2 else None
    acc = ops.integer_fully_connected(_given(args[0]), _given(args[1]), bias, x.zero, weights.zero)
    scales = multiplier.convolution_scales(x.scale, weights.scales, out.scale)
    return _finish(op, real_scale.apply_real_scale(acc, scales) + out.zero, op.activation)


def average_pool(op: Operator, args: Arguments) -> list[Ints]:
    window = (int(op.options.FilterHeight()), int(op.options.FilterWidth()))
    return _finish(op, ops.integer_average_pool(_given(args[0]), window, _strides(op), _same(op)), op.activation)


def max_pool(op: Operator, args: Arguments) -> list[Ints]:
    window = (int(op.options.FilterHeight()), int(op.options.FilterWidth()))
    return _finish(op, ops.integer_max_pool(_given(args[0]), window, _strides(op), _same(op)), op.activation)


def _three(op: Operator) -> tuple[Tensor, Tensor, Tensor]:
    return _tensor(op.inputs[0]), _tensor(op.inputs[1]), op.outputs[0]


def add(op: Operator, args: Arguments) -> list[Ints]:
    a, b, out = _three(op)
    scales = elementwise.add_scales(a.scale, b.scale, out.scale, out.bits)
    rule = elementwise.add if op.name == "ADD" else elementwise.subtract
    return _finish(op, rule(_given(args[0]), _given(args[1]), (a.zero, b.zero, out.zero), scales), op.activation)


def squared_difference(op: Operator, args: Arguments) -> list[Ints]:
    a, b, out = _three(op)
    scales = elementwise.squared_difference_scales(a.scale, b.scale, out.scale)
    zeros = (a.zero, b.zero, out.zero)
    return _finish(op, elementwise.squared_difference(_given(args[0]), _given(args[1]), zeros, scales))


def mul(op: Operator, args: Arguments) -> list[Ints]:
    a, b, out = _three(op)
    scale = multiplier.quantize_multiplier(multiplier.product_scale(a.scale, b.scale, out.scale))
    zeros = (a.zero, b.zero, out.zero)
    return _finish(op, elementwise.multiply(_given(args[0]), _given(args[1]), zeros, scale), op.activation)


def extreme(op: Operator, args: Arguments) -> list[Ints]:
    rule = np.maximum if op.name == "MAXIMUM" else np.minimum
    return [np.asarray(rule(_given(args[0]), _given(args[1])))]


def mean(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    axes = tuple(int(a) for a in np.ravel(_given(args[1])))
    value = _given(args[0])
    total = value.sum(axis=axes)
    count = value.size // total.size
    plain = multiplier.quantize_multiplier(multiplier.ratio_scale(x.scale, out.scale))
    scale = elementwise.mean_multiplier(plain, count)
    return _finish(op, elementwise.mean(total, count, x.zero, out.zero, scale))


def run_softmax(op: Operator, args: Arguments) -> list[Ints]:
    x, beta = _tensor(op.inputs[0]), float(op.options.Beta())
    if x.bits == 8:
        return [softmax.softmax8(_given(args[0]), softmax.softmax8_constants(x.scale, beta), op.outputs[0].bits)]
    return [softmax.softmax16(_given(args[0]), softmax.softmax16_multiplier(x.scale, beta))]


def table_function(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    name = op.name.lower()
    if x.bits == 8:
        entries = tables.table8(tables.FUNCTIONS8[name], x.scale, x.zero, out.scale, out.zero)
        return [tables.lookup8(_given(args[0]), entries)]
    if name == "logistic":
        return [tables.logistic16(_given(args[0]), tables.logistic_input_scale(x.scale))]
    return [tables.tanh16(_given(args[0]), tables.tanh_input_scale(x.scale))]


def relu(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    scale = elementwise.relu_multiplier(x.scale, out.scale)
    return _finish(op, elementwise.rescale(_given(args[0]), x.zero, out.zero, scale), op.name.lower())


def leaky_relu(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    scales = elementwise.leaky_relu_scales(x.scale, float(op.options.Alpha()), out.scale)
    return _finish(op, elementwise.leaky_relu(_given(args[0]), x.zero, out.zero, scales))


def prelu(op: Operator, args: Arguments) -> list[Ints]:
    x, alpha, out = _three(op)
    scales = elementwise.prelu_scales(x.scale, alpha.scale, out.scale)
    return _finish(op, elementwise.prelu(_given(args[0]), _given(args[1]), (x.zero, alpha.zero, out.zero), scales))


def hard_swish(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    scales = elementwise.hard_swish_scales(x.scale, out.scale)
    return _finish(op, elementwise.hard_swish(_given(args[0]), x.zero, out.zero, scales))


def quantize(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    if np.dtype(x.dtype).kind == "f":
        return [edge.quantize(_given(args[0]), out.scale, out.zero, *out.limits)]
    scale = elementwise.rescale_multiplier(x.scale, out.scale)
    return _finish(op, elementwise.rescale(_given(args[0]), x.zero, out.zero, scale))


def dequantize(op: Operator, args: Arguments) -> list[Ints]:
    x = _tensor(op.inputs[0])
    return [edge.dequantize(_given(args[0]), x.scale, x.zero)]  # type: ignore[list-item]


def concatenate(op: Operator, args: Arguments) -> list[Ints]:
    return [np.concatenate([_given(a) for a in args], axis=int(op.options.Axis()))]


def pad(op: Operator, args: Arguments) -> list[Ints]:
    amounts = [tuple(int(v) for v in row) for row in _given(args[1])]
    if op.name == "MIRROR_PAD":
        return [np.pad(_given(args[0]), amounts, mode="reflect")]
    return [np.pad(_given(args[0]), amounts, constant_values=op.outputs[0].zero)]


def nearest(op: Operator, args: Arguments) -> list[Ints]:
    rows, columns = (int(v) for v in _given(args[1]))
    return [ops.resize_nearest(_given(args[0]), (rows, columns))]


def bilinear(op: Operator, args: Arguments) -> list[Ints]:
    rows, columns = (int(v) for v in _given(args[1]))
    corners, half_pixel = bool(op.options.AlignCorners()), bool(op.options.HalfPixelCenters())
    return [ops.integer_bilinear(_given(args[0]), (rows, columns), corners, half_pixel)]


def strided_slice(op: Operator, args: Arguments) -> list[Ints]:
    masks = (int(op.options.BeginMask()), int(op.options.EndMask()), int(op.options.ShrinkAxisMask()))
    return [ops.strided_slice(_given(args[0]), _given(args[1]), _given(args[2]), _given(args[3]), masks)]


def divided(op: Operator, args: Arguments) -> list[Ints]:
    """SPLIT, SPLIT_V and UNPACK."""
    if op.name == "UNPACK":
        axis = int(op.options.Axis())
        return [np.squeeze(part, axis) for part in np.split(_given(args[0]), len(op.outputs), axis)]
    if op.name == "SPLIT":
        return list(np.split(_given(args[1]), len(op.outputs), int(_given(args[0]))))
    return list(np.split(_given(args[0]), np.cumsum(_given(args[1]))[:-1], int(_given(args[2]))))


def moved(op: Operator, args: Arguments) -> list[Ints]:
    if op.name == "TRANSPOSE":
        return [_given(args[0]).transpose([int(v) for v in _given(args[1])])]
    if op.name == "REVERSE_V2":
        return [np.flip(_given(args[0]), [int(v) for v in _given(args[1])])]
    if op.name == "REDUCE_MAX":
        return [_given(args[0]).max(axis=tuple(int(v) for v in _given(args[1]))).reshape(op.outputs[0].shape)]
    return [_given(args[0]).reshape(op.outputs[0].shape)]


def rsqrt(op: Operator, args: Arguments) -> list[Ints]:
    x, out = _tensor(op.inputs[0]), op.outputs[0]
    scale = elementwise.rsqrt_multiplier(x.scale, out.scale)
    return _finish(op, elementwise.rsqrt(_given(args[0]), x.zero, out.zero, scale, out.limits[1]))


def lstm_layer(op: Operator) -> lstm.Lstm:
    x, hidden, cell = _tensor(op.inputs[0]), _tensor(op.inputs[18]), _tensor(op.inputs[19])

    def gate(number: int) -> lstm.Gate:
        forward, recurrent = _tensor(op.inputs[1 + number]), _tensor(op.inputs[5 + number])
        return lstm.Gate(
            forward.values,
            recurrent.values,
            _tensor(op.inputs[12 + number]).values,
            lstm.gate_scale(forward.scale, x.scale),
            lstm.gate_scale(recurrent.scale, hidden.scale),
        )

    inside = op.intermediates[4]
    clip = float(op.options.CellClip())
    quantized_clip = int(np.clip(np.float32(clip) / np.float32(cell.scale), -32768, 32767)) if clip > 0 else 0
    return lstm.Lstm(
        *(gate(number) for number in range(4)),
        input_zero=x.zero,
        state_zero=hidden.zero,
        hidden_zero=inside.zero,
        cell_power=multiplier.is_power_of_two(cell.scale)[1],
        hidden_scale=lstm.hidden_scale(inside.scale),
        cell_clip=quantized_clip,
    )


def run_lstm(op: Operator, args: Arguments) -> list[Ints]:
    layer, x = lstm_layer(op), _given(args[0])
    sequence = x if bool(op.options.TimeMajor()) else x.swapaxes(0, 1)
    units = layer.input.bias.size
    hidden = np.full((sequence.shape[1], units), layer.state_zero, np.int64)
    cell = np.zeros_like(hidden)
    outputs = []
    for value in sequence:
        hidden, cell = lstm.step(value, hidden, cell, layer)
        outputs.append(hidden)
    stacked = np.stack(outputs)
    return [stacked if bool(op.options.TimeMajor()) else stacked.swapaxes(0, 1)]


EVALUATORS: dict[str, Evaluator] = {
    "ADD": add, "AVERAGE_POOL_2D": average_pool, "CONCATENATION": concatenate, "CONV_2D": conv2d,
    "DEPTHWISE_CONV_2D": conv2d, "DEQUANTIZE": dequantize, "EXPAND_DIMS": moved, "FULLY_CONNECTED": fully_connected,
    "HARD_SWISH": hard_swish, "LEAKY_RELU": leaky_relu, "LOGISTIC": table_function, "MAXIMUM": extreme,
    "MAX_POOL_2D": max_pool, "MEAN": mean, "MINIMUM": extreme, "MIRROR_PAD": pad, "MUL": mul, "PAD": pad,
    "PRELU": prelu, "QUANTIZE": quantize, "REDUCE_MAX": moved, "RELU": relu, "RELU6": relu, "RELU_N1_TO_1": relu,
    "RESHAPE": moved, "RESIZE_BILINEAR": bilinear, "RESIZE_NEAREST_NEIGHBOR": nearest, "REVERSE_V2": moved,
    "RSQRT": rsqrt, "SOFTMAX": run_softmax, "SPLIT": divided, "SPLIT_V": divided,
    "SQUARED_DIFFERENCE": squared_difference, "STRIDED_SLICE": strided_slice, "SUB": add, "TANH": table_function,
    "TRANSPOSE": moved, "TRANSPOSE_CONV": transpose_conv, "UNIDIRECTIONAL_SEQUENCE_LSTM": run_lstm, "UNPACK": divided,
}  # fmt: skip


def arguments(op: Operator, known: dict[int, NDArray[Any]]) -> Arguments:
    """An operator's inputs: computed tensors, then constants. Floats stay floats."""
    values: Arguments = []
    for tensor in op.inputs:
        if tensor is None or (tensor.index not in known and tensor.data is None):
            values.append(None)  # absent, or a variable tensor that the operator initializes
        elif tensor.index in known:
            value = known[tensor.index]
            values.append(value if value.dtype.kind == "f" else value.astype(np.int64))
        else:
            values.append(tensor.values)
    return values


def run(operators: list[Operator], known: dict[int, NDArray[Any]]) -> dict[int, NDArray[Any]]:
    """Every tensor of the graph, from those known at the start."""
    known = dict(known)
    for op in operators:
        for tensor, value in zip(op.outputs, EVALUATORS[op.name](op, arguments(op, known)), strict=True):
            known[tensor.index] = value.reshape(tensor.shape)
    return known
