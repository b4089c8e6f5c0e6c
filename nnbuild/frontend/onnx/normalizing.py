"""Normalizations: a scale and offset per channel where the statistics are constant, otherwise means and variances at
run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined, raised, times_plus
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.data_movement import as_shape
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.model.graph import Array
from nnbuild.model.views import View
from nnbuild.ops.affine import Affine
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.layout import Value, arranged, ordered, with_last
from nnbuild.ops.lrn import LRN


def per_channel(call: Call, values: Array, rank: int, axis: int = 1) -> Array:
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def batch_normalization(call: Call) -> None:
    x = call.real(0)
    call.expect(not call.integer("training_mode", 0), "it is in training mode.", "Export the model in evaluation mode.")
    if not all(call.is_constant(index) for index in range(1, 5)):
        call.put(_by_computed(call, x))
        return
    scale, bias, mean, variance = (call.weights(i).astype(np.float64).reshape(-1) for i in range(1, 5))
    channels = x.shape[1] if len(x.shape) > 1 else 1
    call.expect(
        {v.size for v in (scale, bias, mean, variance)} == {channels}, "its constants do not match its channels."
    )
    variance = variance + call.number("epsilon", 1e-5)
    call.expect(bool((variance > 0).all()), "a variance is not positive.")
    factor = scale / np.sqrt(variance)
    call.put(lined(call, x, factor.astype(np.float32), (bias - mean * factor).astype(np.float32)))


def _by_computed(call: Call, x: Value) -> Value:
    """By a mean and a variance of x itself, as tf2onnx writes the layer normalization of Keras 2."""
    channels = x.shape[1] if len(x.shape) > 1 else 1
    column = (channels, *(1,) * (len(x.shape) - 2))

    def of_channels(index: int) -> Value | Array:
        item = call.weights(index) if call.is_constant(index) else call.real(index)
        call.expect(prod(item.shape) == channels, "its inputs do not match its channels.")
        return as_shape(call, item, column) if isinstance(item, Value) else item.reshape(column)

    scale, bias, mean, variance = map(of_channels, range(1, 5))
    held = combined(call, "add", call.as_value(variance), np.float32(call.number("epsilon", 1e-5)))
    made = combined(call, "multiply", combined(call, "subtract", x, mean), call.activated(held, "rsqrt"))
    for function, item, idle in (("multiply", scale, 1), ("add", bias, 0)):
        if isinstance(item, Value) or (item != idle).any():
            made = combined(call, function, made, item)
    return made


def lined(call: Call, x: Value, factor: Array, summand: Array) -> Value:
    """Applies a scale and an offset per channel. Both in one operation, since integers would round between them."""
    pieces = x.view.axes[1] if len(x.shape) > 1 else ()
    if not pieces:
        return combined(call, "add", combined(call, "multiply", x, factor), summand)
    if len(pieces) > 1:
        return _lined_in_pieces(call, x, factor, summand)
    name = call.seen(x.name, x.view.atoms)
    return replace(x, name=call.add(Affine(pieces[0]), [name], {"scale": factor, "shift": summand}))


def _lined_in_pieces(call: Call, x: Value, factor: Array, summand: Array) -> Value:
    """The same where other axes lie between the channels, as behind a flatten or a reshape of channels and rows. They
    are stored together for it, and then as before."""
    pieces = sorted(x.view.axes[1])
    order = [*(a for a in range(len(x.view.atoms)) if a not in pieces), *pieces]
    cut, turned = [x.view.atoms[a] for a in x.view.axes[1]], np.argsort(x.view.axes[1])
    held = {
        role: values.reshape(cut).transpose(turned).reshape(-1)
        for role, values in (("scale", factor), ("shift", summand))
    }
    y, rows = ordered(call, x, order), x.view.size // factor.size
    name = call.seen(y.name, (rows, factor.size) if rows > 1 else (factor.size,))
    y = replace(y, name=call.add(Affine(int(rows > 1)), [name], held))
    return ordered(call, y, np.argsort(order).tolist())


def normalized(call: Call, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over these axes."""
    x = arranged(call, x, [], axes, free=True)
    size = prod(x.shape[a] for a in axes)
    rows = x.view.size // size
    name = call.seen(x.name, (rows, size) if rows > 1 else (size,))
    return replace(x, name=call.add(LayerNorm(1, epsilon), [name]))


def layer_normalization(centred: bool, call: Call) -> None:
    x = call.real(0)
    rank = len(x.shape)
    first = call.axis(call.integer("axis", -1), rank)
    epsilon = call.number("epsilon", 1e-5)
    axes = list(range(first, rank))
    if len(call.node.outputs) > 1 and any(call.node.outputs[1:]):
        _with_statistics(call, x, axes, epsilon)
    x = arranged(call, x, [], axes)
    size = prod(x.shape[first:])
    rows = x.view.size // size
    constants, late = {}, []
    for index, role in ((1, "scale"), (2, "shift")):
        if call.is_constant(index):
            values = call.weights(index)
            call.within_tables(size)
            constants[role] = np.ascontiguousarray(np.broadcast_to(values, x.shape[first:]).reshape(-1))
        elif call.given(index):
            late.append(("multiply" if role == "scale" else "add", call.real(index)))
    if late and late[0][0] == "multiply" and "shift" in constants:
        shift = constants.pop("shift")
        late.append(("add", call.as_value(shift.reshape(x.shape[first:]))))
    name = call.seen(x.name, (rows, size) if rows > 1 else (size,))
    made = replace(x, name=call.add(LayerNorm(1, epsilon, centred), [name], constants))
    for function, operand in late:
        made = combined(call, function, made, operand)
    call.put(made)


def _with_statistics(call: Call, x: Value, axes: Sequence[int], epsilon: float) -> None:
    """Also outputs the mean and the inverse standard deviation, which are rarely used."""
    mean = reduced(call, x, "mean", axes, True)
    off = combined(call, "subtract", x, mean)
    variance = reduced(call, call.activated(off, "square"), "mean", axes, True)
    call.put(mean, 1)
    call.put(call.activated(times_plus(call, variance, 1.0, epsilon), "rsqrt"), 2)


def instance_normalization(call: Call) -> None:
    x = call.real(0)
    made = normalized(call, x, range(2, len(x.shape)), call.number("epsilon", 1e-5))
    call.put(_scaled(call, made, 1, 2))


def _scaled(call: Call, x: Value, scale: int, bias: int) -> Value:
    """Applies a factor and a summand per channel, where they change anything."""
    rank = len(x.shape)
    if call.is_constant(scale) and call.is_constant(bias):
        factor, summand = call.weights(scale), call.weights(bias)
        if (factor == 1).all() and not summand.any():
            return x
        return lined(call, with_last(call, x, 1), factor, summand)
    for index, function, neutral in ((scale, "multiply", 1), (bias, "add", 0)):
        item = call.item(index)
        if isinstance(item, Value):
            x = combined(call, function, x, as_shape(call, call.real(index), (item.shape[0], *(1,) * (rank - 2))))
        elif (call.weights(index) != neutral).any():
            x = combined(call, function, x, per_channel(call, call.weights(index), rank))
    return x


def group_normalization(call: Call) -> None:
    x, groups = call.real(0), call.integer("num_groups", 1)
    shape = x.shape
    call.expect(
        len(shape) > 2 and groups > 0 and shape[1] % groups == 0, f"{groups} groups do not divide {list(shape)}."
    )
    seen = as_shape(call, x, (shape[0], groups, shape[1] // groups, *shape[2:]))
    made = normalized(call, seen, range(2, len(shape) + 1), call.number("epsilon", 1e-5))
    if call.shape(1) == (groups,) and groups != shape[1]:  # before opset 21
        made = _per_group(call, made, groups)
        call.put(as_shape(call, made, shape))
        return
    call.put(_scaled(call, as_shape(call, made, shape), 1, 2))


def _per_group(call: Call, x: Value, groups: int) -> Value:
    rank = len(x.shape)
    for index, function in ((1, "multiply"), (2, "add")):
        operand = as_shape(call, call.value(index), (groups, *(1,) * (rank - 2)))
        x = combined(call, function, x, operand)
    return x


def mean_variance(call: Call) -> None:
    x = call.real(0)
    axes = call.axes(call.integers("axes", (0, 2, 3)), len(x.shape))
    call.put(normalized(call, x, axes, 1e-9))


def lp_normalization(call: Call) -> None:
    x, p = call.real(0), call.integer("p", 2)
    axis = call.axis(call.integer("axis", -1), len(x.shape))
    call.expect(p in (1, 2), f"its p is {p}.")
    total = reduced(call, call.activated(x, "absolute" if p == 1 else "square"), "sum", [axis], True)
    length = total if p == 1 else call.activated(total, "sqrt")
    tiny = combined(call, "maximum", length, np.float32(1e-30))
    call.put(combined(call, "divide", x, tiny))


def local_response(call: Call) -> None:
    """Normalizes across channels, stored last; an even window extends one further forward than back."""
    x, size = call.real(0), call.integer("size", 1)
    alpha, beta, bias = call.number("alpha", 1e-4), call.number("beta", 0.75), call.number("bias", 1.0)
    call.expect(size > 0 and len(x.shape) > 2, f"its size is {size}.")
    if size % 2:
        value = arranged(call, x, [0, *range(2, len(x.shape))], [1])
        shape = tuple(x.shape[i] for i in (0, *range(2, len(x.shape)), 1))
        rows = prod(shape[:-1])
        name = call.seen(value.name, (rows, shape[-1]))
        made = call.add(LRN(size // 2, bias, alpha / size, beta), [name])
        call.put(replace(value, name=made, view=View(value.view.atoms, value.view.axes)))
        return
    from nnbuild.frontend.onnx.data_movement import every, padded, part

    squares = call.activated(x, "square")
    around = [(0, 0)] * len(x.shape)
    around[1] = ((size - 1) // 2, size // 2)
    wide, total = padded(call, squares, around, "constant", 0.0), None
    for place in range(size):
        ranges = every(wide.shape)
        ranges[1] = (place, 1, x.shape[1])
        piece = part(call, wide, ranges)
        total = piece if total is None else combined(call, "add", total, piece)
    assert total is not None
    lengths = raised(call, times_plus(call, total, alpha / size, bias), beta)
    call.put(combined(call, "divide", x, lengths))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "BatchNormalization": batch_normalization,
    "LayerNormalization": partial(layer_normalization, True),
    "RMSNormalization": partial(layer_normalization, False),
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "MeanVarianceNormalization": mean_variance,
    "LpNormalization": lp_normalization,
    "LRN": local_response,
}
