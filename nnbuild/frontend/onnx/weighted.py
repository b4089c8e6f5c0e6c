"""The number format of an ONNX operator with weights: integers, where its input, weights and result are quantized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.quantized import LARGEST_SCALE, Mode, ahead, along, is_scaled
from nnbuild.frontend.onnx.records import Node
from nnbuild.frontend.onnx.scope import Scaled
from nnbuild.model.graph import Array, Quant
from nnbuild.numeric.rounding import fit_bytes, narrowest
from nnbuild.ops.layout import Value

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
    real = _float_sums(call, x, weights, bias, axis, shifted) if is_scaled(call, x) else None
    if isinstance(real, Mode):
        return real
    if found is not None or real is not None:
        call.assembly.in_floats(call.layer, str(found or real))
    kernel = call.weights(weights)
    added = call.weights(bias).reshape(-1) if call.given(bias) else None
    out = kernel.shape[axis] * _groups(call)
    call.expect(added is None or added.size == out, "its bias does not match its outputs.")
    return Mode((call.as_real(x),), FLOAT, weights=kernel, bias=added)


def _groups(call: Call) -> int:
    """How often the weights' axis of outputs occurs among the outputs."""
    return call.integer("group", 1) if call.node.kind == "ConvTranspose" else 1


def _by_output(call: Call, weights: _Weights) -> Array:
    """The scales of the outputs: one, or one for each, as float32 like all scales."""
    scales = weights.scales.astype(np.float32).astype(np.float64)
    return np.tile(scales, _groups(call)) if scales.size > 1 else scales


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


@dataclass(frozen=True, eq=False)
class _Line:
    """A normalization behind an operator: a factor and a summand for each output."""

    factor: Array
    summand: Array
    node: Node


@dataclass(frozen=True, eq=False)
class _Weights:
    """Integers and their scales: one, or one for each index of the axis that counts outputs."""

    integers: Array
    scales: Array
    point: int = 0

    def by_outputs(self, axis: int) -> Array:
        """The scales in the shape of the integers."""
        return along(self.scales, self.integers.ndim, axis)


def _integer_mode(call: Call, x: Value, weights: int, bias: int, axis: int, shifted: bool) -> Mode | str | None:
    """The mode; None where some part is not quantized; otherwise the reason why there is none, with the next step."""
    call, nodes = _with_sum(call, x, weights, bias, axis)
    call, line = _with_norm(call, x)
    next_one, held = ahead(call, clamps=True), call.scaled(weights)
    own, quant = call.form(x)
    if next_one is None or held is None or next_one.form[0] != own or quant is None or next_one.form[1] is None:
        return None
    stored, out = as_bytes(held, axis, shifted, own), next_one.form[1]
    if isinstance(stored, str):
        return stored
    found: _Weights | None = stored
    given = call.given(bias)
    added = call.weights(bias).astype(np.float64).reshape(-1) if given else None
    if line is not None:
        found = _scaled_by(stored, axis, line.factor)
        added = line.summand + (0 if added is None else added * line.factor)
        nodes = (*nodes, line.node)
    if found is None or (added is not None and added.size != found.integers.shape[axis] * _groups(call)):
        return None
    whole = call.scaled(bias) if given and line is None else None
    if added is not None and whole is None:
        found = _for_floats(call, added, found, axis, own, quant.scale, out.scale)
        step = quant.scale * found.scales.max() / out.scale
        if step > COARSEST:
            return (
                f"its bias is in floats, and a step of its sums is {step:.2g} of the output's, above {COARSEST:.2g}. "
                "Have the bias quantized, too (int32, its scale the input's times the weights'), or weights by channel."
            )
    by_output = _by_output(call, found)
    steps = None if added is None else _bias(added, whole, quant.scale * by_output)
    if added is not None and whole is not None and not _within(found, axis, steps, own, quant, out):
        # A bias near the ends of its type, as a quantizer gives a dead channel, which leaves no room for the products.
        found = _for_floats(call, added, found, axis, own, quant.scale, out.scale)
        by_output = _by_output(call, found)
        steps = _bias(added, None, quant.scale * by_output)
    if not _within(found, axis, steps, own, quant, out):
        return "its sums or bias overflow their integer type. Check its scales, or calibrate again."
    return Mode(
        (x,),
        next_one.form,
        next_one.clamp,
        (*nodes, *next_one.nodes),
        narrowest(found.integers),
        None if steps is None else steps.astype(BIAS_TYPES[own]),
        by_output,
        found.point,
    )


def _float_sums(call: Call, x: Value, weights: int, bias: int, axis: int, shifted: bool) -> Mode | str | None:
    """Sums of integers that become floats: for a result that is not quantized, or that no integer rule gives. A
    normalization that does not fit the weights stays behind."""
    call, nodes = _with_sum(call, x, weights, bias, axis)
    held, (own, quant) = call.scaled(weights), call.form(x)
    stored = None if held is None or own != "int8" else as_bytes(held, axis, shifted, own)
    if isinstance(stored, str):
        return stored
    if quant is None or stored is None:
        return None
    if not _sums_fit(stored, axis, quant):
        return "its sums overflow 32 bits. Split its inputs, and add the results."
    out = stored.integers.shape[axis] * _groups(call)
    added = call.weights(bias).astype(np.float64).reshape(-1) if call.given(bias) else None
    call.expect(added is None or added.size == out, "its bias does not match its outputs.")
    _, line = _with_norm(call, x)
    found = None if line is None else _scaled_by(stored, axis, line.factor)
    if line is not None and found is not None:
        stored, nodes = found, (*nodes, line.node)
        added = line.summand + (0 if added is None else added * line.factor)
    return Mode(
        (x,),
        FLOAT,
        absorbed=nodes,
        weights=narrowest(stored.integers),
        bias=None if added is None else added.astype(np.float32),
        scales=_by_output(call, stored),
        zero=stored.point,
    )


def _sums_fit(weights: _Weights, axis: int, x: Quant) -> bool:
    """Whether all sums of inputs less their zero point stay within 32 bits."""
    magnitudes = np.abs(weights.integers - weights.point)
    taps = magnitudes.sum(axis=tuple(i for i in range(magnitudes.ndim) if i != axis)).max()
    return bool(taps * (REACH["int8"] + abs(x.zero_point)) < SUM_LIMITS["int8"])


def _with_norm(call: Call, x: Value) -> tuple[Call, _Line | None]:
    """The operator with the normalization that follows, as training tools leave it behind weights that the graph
    quantizes. It is one of the operator's outputs where these are the second axis."""
    name = call.node.outputs[0]
    second = call.node.kind.startswith("Conv") or len(x.shape) == 2
    alone = second and _groups(call) == 1 and name not in call.scope.ends
    readers = call.scope.readers.get(name, []) if alone else []
    if len(readers) != 1 or readers[0].kind != "BatchNormalization" or readers[0].domain:
        return call, None
    norm = Call(call.importer, call.scope, readers[0])
    known = all(isinstance(call.scope.get(each), np.ndarray) for each in norm.node.inputs[1:])
    if norm.node.inputs[0] != name or len(norm.node.outputs) > 1 or not known or norm.integer("training_mode", 0):
        return call, None
    scale, shift, mean, variance = (norm.weights(i).astype(np.float64).reshape(-1) for i in range(1, 5))
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = scale / np.sqrt(variance + norm.number("epsilon", 1e-5))
    if not np.isfinite(factor).all():
        return call, None
    joined = Call(call.importer, call.scope, replace(call.node, outputs=norm.node.outputs), call)
    return joined, _Line(factor, shift - mean * factor, norm.node)


def as_bytes(held: Scaled, axis: int, shifted: bool, own: str) -> _Weights | str:
    """The file's weights as bytes, or why they are none. Less a zero point they may have nine bits where they multiply
    bytes; dense layers keep a single one."""
    if held.blocks:
        return f"its weights have scales of blocks. {BY_CHANNEL}"
    integers, zeros = held.integers.astype(np.int64), held.zeros.astype(np.int64).reshape(-1)
    if held.integers.dtype == np.uint8:
        integers, zeros = integers - 128, zeros - 128
    scales = held.scales.reshape(-1).astype(np.float64)
    if scales.size > 1 and (held.axis % integers.ndim != axis or scales.size != integers.shape[axis]):
        return f"its weights have scales along axis {held.axis}. {BY_CHANNEL}"
    if zeros.any() and not (shifted and zeros.size == 1):
        less = integers - along(zeros, integers.ndim, held.axis)
        if not fit_bytes(less) and (own != "int8" or not fit_bytes(integers)):
            return f"its weights have a zero point. {BY_CHANNEL}"
        integers, zeros = less, np.zeros(1, np.int64)
    elif not fit_bytes(integers):
        return f"its weights have more than 8 bits. {BY_CHANNEL}"
    if scales.min() < 0 or not 0 < scales.max() <= LARGEST_SCALE:
        return f"its weights have scales from {scales.min():g} to {scales.max():g}. {BY_CHANNEL}"
    point = int(zeros[0]) if zeros.size == 1 else 0
    return _without_zeros(_Weights(integers, scales, point), axis)


def _without_zeros(weights: _Weights, axis: int) -> _Weights:
    """Channels with a scale of 0 get weights of 0 instead."""
    scales = weights.scales
    if scales.min() > 0:
        return weights
    integers = np.where(weights.by_outputs(axis) > 0, weights.integers, weights.point)
    return replace(weights, integers=integers, scales=np.where(scales > 0, scales, scales[scales > 0].min()))


def _scaled_by(weights: _Weights, axis: int, factor: Array) -> _Weights | None:
    """Each output by a factor."""
    if weights.point or factor.size != weights.integers.shape[axis] or not factor.any():
        return None
    integers = weights.integers * np.where(along(factor, weights.integers.ndim, axis) < 0, -1, 1)
    if fit_bytes(weights.integers) and not fit_bytes(integers):
        return None
    return _without_zeros(_Weights(integers, weights.scales * np.abs(factor)), axis)


def _for_floats(call: Call, bias: Array, weights: _Weights, axis: int, own: str, x: float, out: float) -> _Weights:
    """Weights whose steps suit a bias in floats: fine ones, but coarser ones where it is too large in steps of their
    products, as that of a dead channel, whose own weights hardly count."""
    if weights.point:
        return weights
    finer = _headroom(weights.integers)
    weights = replace(weights, integers=weights.integers * finer, scales=weights.scales / finer)
    least = np.abs(bias) / (x * SUM_LIMITS[own] / 4)
    if _groups(call) > 1 or (least <= weights.scales).all():
        return weights
    exact = weights.integers * weights.by_outputs(axis)
    raised = replace(weights, scales=np.maximum(weights.scales, least))
    raised = replace(raised, integers=np.rint(exact / raised.by_outputs(axis)).astype(np.int64))
    errors = np.abs(raised.integers * raised.by_outputs(axis) - exact)
    most = errors.sum(axis=tuple(i for i in range(errors.ndim) if i != axis)).max() * x * REACH[own] / out
    return raised if most <= COARSEST else weights


def _headroom(weights: Array) -> int:
    """The power of two by which narrow weights can be scaled, to give a float bias finer steps."""
    most = int(np.abs(weights).max(initial=1))
    return 1 << max(0, (127 // max(1, most)).bit_length() - 1)


def _bias(real: Array, whole: Scaled | None, scales: Array) -> Array:
    """The bias in steps of the sums."""
    if whole is not None and whole.integers.dtype.kind == "i" and np.allclose(whole.scales, scales, rtol=1e-6, atol=0):
        return whole.integers.astype(np.float64).reshape(-1)
    return np.asarray(np.rint(real / scales))


def _within(weights: _Weights, axis: int, bias: Array | None, own: str, x: Quant, out: Quant) -> bool:
    """Whether the bias, the sums and their scaling stay within their integer types."""
    integers = weights.integers - weights.point
    real = x.scale * weights.scales.max() / out.scale
    taps = np.abs(integers).sum(axis=tuple(i for i in range(integers.ndim) if i != axis)).max()
    added = 0.0 if bias is None else float(np.abs(bias).max())
    most = float(taps) * REACH[own] + added
    fits = added < SUM_LIMITS[own] / 2 and most < SUM_LIMITS[own]
    return bool(fits and real < RATIO_LIMIT and (own == "int16" or most * real < RESULT_LIMIT))
