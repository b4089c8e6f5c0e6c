"""The number format of an ONNX operator with weights: integers, where its input, weights and result are quantized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.layout import Value
from nnbuild.frontend.onnx.quantized import LARGEST_SCALE, Mode, ahead, along, is_scaled
from nnbuild.frontend.onnx.records import Node
from nnbuild.model.graph import Array, Quant

SUM_LIMITS = {"int8": 2.0**31, "int16": 2.0**36}
BIAS_TYPES: Mapping[str, type[np.generic]] = {"int8": np.int32, "int16": np.int64}
REACH = {"int8": 255, "int16": 32768}
RATIO_LIMIT = 16.0
COARSEST = 1 / 32
"""The coarsest step for a float bias, as a fraction of the output's step."""
RESULT_LIMIT = 2.0**30
BY_CHANNEL = "Quantize them to int8 without a zero point, per output channel or per tensor."


def mode_of(call: Call, weights: int, bias: int, axis: int = 0, *, shifted: bool = False) -> Mode:
    """The mode of an operator with weights, whose outputs are counted by `axis` of them; `shifted` allows a zero
    point of the weights."""
    x = call.value(0)
    found = _integer_mode(call, x, weights, bias, axis, shifted) if is_scaled(call, x) else None
    if isinstance(found, Mode):
        return found
    if found is not None:
        call.assembly.note(
            f"layer {call.layer!r} is computed in floats, although its neighbours are quantized: {found}"
        )
    kernel = call.weights(weights)
    added = call.weights(bias).reshape(-1) if call.given(bias) else None
    out = kernel.shape[axis] * _groups(call)
    call.expect(added is None or added.size == out, "its bias does not match its outputs.")
    return Mode((call.as_real(x),), FLOAT, weights=kernel, bias=added)


def _groups(call: Call) -> int:
    """How often the weights' axis of outputs occurs among the outputs."""
    return call.integer("group", 1) if call.node.kind == "ConvTranspose" else 1


def _with_sum(call: Call, x: Value, weights: int, bias: int, axis: int) -> tuple[Call, tuple[Node, ...]]:
    """The operator with the sum that follows as its bias, and that sum: exporters write MatMul and Add for a layer of
    several rows."""
    name = call.node.outputs[0]
    readers = (
        [] if call.given(bias) or _groups(call) > 1 or name in call.scope.ends else call.scope.readers.get(name, [])
    )
    if len(readers) != 1 or readers[0].kind != "Add" or readers[0].domain or len(set(readers[0].inputs)) != 2:
        return call, ()
    other = next(given for given in readers[0].inputs if given != name)
    values, channels = call.scope.get(other), 1 if call.node.kind.startswith("Conv") else len(x.shape) - 1
    wanted = [call.shape(weights)[axis] if place == channels else 1 for place in range(len(x.shape))]
    shape = list(values.shape) if isinstance(values, np.ndarray) else []
    if [1] * (len(wanted) - len(shape)) + shape != wanted:
        return call, ()
    inputs = (*call.node.inputs[:bias], *[""] * (bias - call.count), other)
    summed = replace(call.node, inputs=inputs, outputs=readers[0].outputs)
    return Call(call.importer, call.scope, summed, call), (readers[0],)


def _integer_mode(call: Call, x: Value, weights: int, bias: int, axis: int, shifted: bool) -> Mode | str | None:
    """The mode; None where some part is not quantized; otherwise the reason why there is none, with the next step."""
    call, sums = _with_sum(call, x, weights, bias, axis)
    next_one, held = ahead(call, clamps=True), call.scaled(weights)
    own, quant = call.form(x)
    if next_one is None or held is None or next_one.form[0] != own or quant is None or next_one.form[1] is None:
        return None
    integers, zeros = held.integers.astype(np.int64), held.zeros.astype(np.int64).reshape(-1)
    if held.integers.dtype == np.uint8:
        integers, zeros = integers - 128, zeros - 128
    scales = held.scales.reshape(-1).astype(np.float64)
    several = scales.size > 1
    if several and (held.axis % integers.ndim != axis or scales.size != integers.shape[axis]):
        return f"its weights have scales along axis {held.axis}. {BY_CHANNEL}"
    if zeros.any() and not (shifted and zeros.size == 1):
        low = integers - along(zeros, integers.ndim, held.axis)  # narrow weights may still fit into eight bits
        if np.abs(low + 0.5).max() > 128:
            return f"its weights have a zero point. {BY_CHANNEL}"
        integers, zeros = low, np.zeros(1, np.int64)
    if np.abs(integers + 0.5).max() > 128 or scales.min() < 0 or not 0 < scales.max() <= LARGEST_SCALE:
        return f"its weights have more than 8 bits, or scales from {scales.min():g} to {scales.max():g}. {BY_CHANNEL}"
    point = int(zeros[0]) if zeros.size == 1 else 0
    if scales.min() == 0:  # channels of zeros
        integers = np.where(along(scales, integers.ndim, held.axis) > 0, integers, point)
        scales = np.where(scales > 0, scales, scales[scales > 0].min())
    if call.given(bias) and call.scaled(bias) is None:
        finer = 1 if point else _headroom(integers)
        integers, scales = integers * finer, scales / finer
        if _groups(call) == 1 and point == 0:
            added_floats = call.weights(bias).astype(np.float64).reshape(-1)
            integers, scales = _with_room(
                added_floats, integers, axis, scales, own, quant.scale, next_one.form[1].scale
            )
            several = scales.size > 1
        step = quant.scale * scales.max() / next_one.form[1].scale
        if step > COARSEST:
            return (
                f"its bias is in floats, and a step of its sums is {step:.2g} of the output's, above {COARSEST:.2g}. "
                "Have the bias quantized, too (int32, its scale the input's times the weights'), or weights by channel."
            )
    by_output = np.tile(scales, _groups(call)) if several else scales
    added = _bias(call, bias, quant.scale * by_output, own, integers.shape[axis] * _groups(call))
    if added is False or not _within(integers - point, axis, added, own, quant, scales, next_one.form[1]):
        return "its sums or bias overflow their integer type. Check its scales, or calibrate again."
    return Mode(
        (x,),
        next_one.form,
        next_one.clamp,
        (*sums, *next_one.nodes),
        integers.astype(np.int8),
        None if added is None else np.asarray(added),
        by_output,
        point,
    )


def _headroom(weights: Array) -> int:
    """The power of two by which narrow weights can be scaled, to give a float bias finer steps."""
    most = int(np.abs(weights).max(initial=1))
    return 1 << max(0, (127 // max(1, most)).bit_length() - 1)


def _with_room(
    bias: Array, integers: Array, axis: int, scales: Array, own: str, x: float, out: float
) -> tuple[Array, Array]:
    """Weights in coarser steps where a bias is too large in steps of their products, as that of a dead channel, whose
    own weights hardly count; the same where that would change outputs."""
    least = np.abs(bias) / (x * SUM_LIMITS[own] / 4)
    if len(least) != integers.shape[axis] or (least <= scales).all():
        return integers, scales
    raised = np.maximum(scales, least)
    exact = integers * along(scales, integers.ndim, axis)
    rounded = np.rint(exact / along(raised, integers.ndim, axis)).astype(np.int64)
    errors = np.abs(rounded * along(raised, integers.ndim, axis) - exact)
    most = errors.sum(axis=tuple(i for i in range(integers.ndim) if i != axis)).max() * x * REACH[own] / out
    return (rounded, raised) if most <= COARSEST else (integers, scales)


def _bias(call: Call, index: int, scales: Array, own: str, count: int) -> Array | bool | None:
    """The bias in steps of the sums; False where it overflows."""
    if not call.given(index):
        return None
    held = call.scaled(index)
    if held is not None and held.integers.dtype.kind == "i" and np.allclose(held.scales, scales, rtol=1e-6, atol=0):
        values = held.integers.astype(np.float64).reshape(-1)
    else:
        values = np.rint(call.weights(index).astype(np.float64).reshape(-1) / scales)
    if values.size != count or np.abs(values).max() >= SUM_LIMITS[own] / 2:
        return False
    return values.astype(BIAS_TYPES[own])


def _within(
    weights: Array, axis: int, added: Array | bool | None, own: str, x: Quant, scales: Array, out: Quant
) -> bool:
    """Whether the sums and their scaling stay within their integer types."""
    real = x.scale * scales.max() / out.scale
    taps = np.abs(weights).sum(axis=tuple(i for i in range(weights.ndim) if i != axis)).max()
    most = float(taps) * REACH[own] + (
        float(np.abs(added.astype(np.float64)).max()) if isinstance(added, np.ndarray) else 0
    )
    return bool(real < RATIO_LIMIT and most < SUM_LIMITS[own] and (own == "int16" or most * real < RESULT_LIMIT))
