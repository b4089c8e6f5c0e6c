"""Folds a factor and a summand per channel (BatchNormalization) into an adjacent layer.

Everything is computed in float64 and rounded to float32 once. What would overflow float32 stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import NO_CLAMP, Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.windows import NO_PADDING
from nnbuild.passes.graph_editor import GraphEditor, in_single_precision

MOST_SPREAD = 4.0
"""Of the factors in weights that are to be quantized."""
MOST_COARSE = 8.0
"""By how many times more their rounding may count with factors in them."""
Linear = Conv2D | DepthwiseConv2D | Conv2DTranspose | Dense


@dataclass(frozen=True, eq=False)
class ChannelAffine:
    """x * scale + shift per index of the last axis, in float64, then a clamp."""

    scale: Array
    shift: Array
    clamp: Clamp = NO_CLAMP


def fold_affine(graph: Graph, most_spread: float = inf) -> Graph:
    """Factors of a model's input that differ by more than `most_spread` stay apart: weights that contain them would
    need finer steps in some columns than in others. So do others, as those of channels that are nearly dead, where
    `most_spread` is given and the steps of weights would become too coarse."""
    draft = GraphEditor(graph)
    into_consumer = partial(_fold_into_consumer, most_spread=most_spread)
    folds = (_fold_into_producer, _join, _sink, into_consumer, _split_off_summand)
    for name in [op.name for op in graph.ops]:
        op = draft.ops.get(name)
        if op is not None and most_spread < inf:
            _level(draft, op, most_spread)
        op = draft.ops.get(name)
        if op is not None:
            any(fold(draft, op) for fold in folds)
    return draft.finish()


MAX_CHANNELS = 1 << 20
"""Most channels: more than any layer has."""


def channel_affine_of(draft: GraphEditor, op: Op) -> ChannelAffine | None:
    """The operation as a factor and a summand, or None."""
    shape = draft.shape(op, op.inputs[0]) if len(op.inputs) == 1 else ()
    if not shape or shape[-1] > MAX_CHANNELS or draft.tensors[op.inputs[0]].quant is not None:
        return None
    values = {role: draft.constants[name].data.astype(np.float64) for role, name in op.constants.items()}
    match op.attributes:
        case Affine(axis=axis, clamp=clamp) if axis == len(shape) - 1:
            return ChannelAffine(values["scale"], values["shift"], clamp)
        case Binary(function=function, clamp=clamp):
            ((role, value),) = values.items()
            along_last = value.ndim <= len(shape) and value.size in (1, value.shape[-1]) if value.ndim else True
            if not along_last or value.size not in (1, shape[-1]):
                return None
            flat = np.broadcast_to(value.reshape(-1), shape[-1:])
            return _binary_line(function, role, flat, clamp)
        case _:
            return None


def _binary_line(function: str, role: str, value: Array, clamp: Clamp) -> ChannelAffine | None:
    one, zero = np.ones_like(value), np.zeros_like(value)
    match function, role:
        case "add", _:
            return ChannelAffine(one, value, clamp)
        case "multiply", _:
            return ChannelAffine(value, zero, clamp)
        case "subtract", "right":
            return ChannelAffine(one, -value, clamp)
        case "subtract", "left":
            return ChannelAffine(-one, value, clamp)
        case "divide", "right" if value.all():
            return ChannelAffine(1 / value, zero, clamp)
        case _:
            return None


def _fold_into_producer(draft: GraphEditor, op: Op) -> bool:
    line, before = channel_affine_of(draft, op), draft.only_producer(op)
    if line is None or before is None:
        return False
    if isinstance(before.attributes, LayerNorm) and before.attributes.count == 1 and line.clamp == NO_CLAMP:
        return _fold_into_norm(draft, before, op, line)
    if not isinstance(before.attributes, Linear) or before.attributes.clamp != NO_CLAMP:
        return False
    held = draft.constants[before.constants["kernel"]]
    integers = None if held.quant is None else _with_factors(before.attributes, held, line.scale)
    if held.quant is not None and integers is None:
        return False
    kernel = held.data.astype(np.float64)
    bias = draft.constants[before.constants["bias"]].data if "bias" in before.constants else 0.0
    found = in_single_precision(
        kernel=kernel * _along_outputs(before.attributes, kernel, line.scale), bias=bias * line.scale + line.shift
    )
    if found is None:
        return False
    constants = {role: draft.new_constant(before, role, data) for role, data in found.items()}
    if integers is not None:
        draft.constants[constants["kernel"]] = replace(integers, name=constants["kernel"])
    changed = replace(before, attributes=replace(before.attributes, clamp=line.clamp), constants=constants)
    draft.absorb(changed, op)
    return True


def _with_factors(attributes: Linear, held: Constant, factors: Array) -> Constant | None:
    """Integers whose sums become floats, with the factors in their scales; None where integers cannot have them."""
    quant, data = held.quant, held.data
    assert quant is not None
    if quant.zero_point or not factors.all():
        return None
    axis = {Dense: 1, Conv2DTranspose: 2}.get(type(attributes), 3)
    signs = _along_outputs(attributes, data, np.where(factors < 0, -1, 1))
    scales = (np.asarray(quant.scales) * np.abs(factors)).astype(np.float32)
    integers = data.astype(np.int64) * signs
    if integers.max() > 127 or not np.isfinite(scales).all() or scales.min() < np.finfo(np.float32).tiny:
        return None
    return replace(held, data=integers.astype(np.int8), quant=replace(quant, scales=tuple(scales.tolist()), axis=axis))


def _fold_into_norm(draft: GraphEditor, norm: Op, op: Op, line: ChannelAffine) -> bool:
    shape = draft.shape(norm, norm.inputs[0])[-1:]
    held = {role: draft.constants[name].data.astype(np.float64) for role, name in norm.constants.items()}
    scale, shift = held.get("scale", np.ones(shape)), held.get("shift", np.zeros(shape))
    found = in_single_precision(scale=scale * line.scale, shift=shift * line.scale + line.shift)
    if found is None:
        return False
    constants = {role: draft.new_constant(norm, role, data) for role, data in found.items()}
    draft.absorb(replace(norm, constants=constants), op)
    return True


def _along_outputs(attributes: Linear, kernel: Array, scale: Array) -> Array:
    """The factors in the shape of the kernel's output channels."""
    match attributes:
        case DepthwiseConv2D():
            return scale.reshape(kernel.shape[2:])
        case Conv2DTranspose():
            return scale[:, None]
        case _:
            return scale


def _level(draft: GraphEditor, op: Op, most_spread: float) -> None:
    """Moves the sizes of factors that differ much before a ReLU or its like, into the layer there, whose weights have
    steps for each channel. What the ReLU gives has the same for all, and so have the weights behind the factors. With
    none between, the layer takes factors and summands together, and its weights are rounded once."""
    line, before = channel_affine_of(draft, op), draft.only_producer(op)
    alone = before is not None and isinstance(before.attributes, Linear) and before.attributes.clamp == NO_CLAMP
    while before is not None and _keeps_factors(before.attributes):
        before = draft.only_producer(before)
    if line is None or before is None or alone or not isinstance(before.attributes, Linear):
        return
    if draft.constants[before.constants["kernel"]].quant is not None:
        return
    sizes = np.where(line.scale == 0, 1.0, np.abs(line.scale))
    if before.attributes.clamp not in (NO_CLAMP, Clamp(0.0, None)) or sizes.max() <= most_spread * sizes.min():
        return
    held = {role: draft.constants[name].data.astype(np.float64) for role, name in before.constants.items()}
    held["kernel"] = held["kernel"] * _along_outputs(before.attributes, held["kernel"], sizes)
    if "bias" in held:
        held["bias"] = held["bias"] * sizes
    levelled, rest = in_single_precision(**held), in_single_precision(scale=np.sign(line.scale), shift=line.shift)
    if levelled is None or rest is None:
        return
    for each, made in ((before, levelled), (op, rest)):
        constants = {role: draft.new_constant(each, role, data) for role, data in made.items()}
        attributes = each.attributes if each is before else Affine(len(draft.shape(op, op.inputs[0])) - 1, line.clamp)
        draft.change(replace(each, attributes=attributes, constants=constants))


def _keeps_factors(attributes: Attributes) -> bool:
    """Whether a factor above zero for each channel may come before instead of behind it."""
    match attributes:
        case Activation("clamp", (0.0, high)) | Activation("relu", (high, _, 0.0)):
            return bool(high == inf)
        case Activation("leaky_relu" | "absolute") | PReLU() | Pool2D(clamp=Clamp(None, None)):
            return True
    return False


def _join(draft: GraphEditor, op: Op) -> bool:
    """Joins two of them in a row."""
    line, before = channel_affine_of(draft, op), draft.only_producer(op)
    first = channel_affine_of(draft, before) if before is not None else None
    if line is None or before is None or first is None or first.clamp != NO_CLAMP:
        return False
    found = in_single_precision(scale=first.scale * line.scale, shift=first.shift * line.scale + line.shift)
    if found is None:
        return False
    constants = {role: draft.new_constant(before, role, data) for role, data in found.items()}
    axis = len(draft.shape(before, before.inputs[0])) - 1
    draft.absorb(replace(before, attributes=Affine(axis, line.clamp), constants=constants), op)
    return True


def _sink(draft: GraphEditor, op: Op) -> bool:
    """Moves the factor and summand behind a pool, a mean or a change of axes: there are fewer values then, and a layer
    may absorb it."""
    before = draft.only_producer(op)
    line = channel_affine_of(draft, before) if before is not None else None
    if before is None or line is None or line.clamp != NO_CLAMP or before.outer or not _sinks(draft, op, line):
        return False
    (source,), (middle,), (end,) = before.inputs, before.outputs, op.outputs
    draft.swap(replace(op, inputs=(source,), outputs=(middle,)), replace(before, inputs=(middle,), outputs=(end,)))
    after = draft.ops[before.name]
    last = len(draft.tensors[end].shape) - 1
    found = in_single_precision(scale=line.scale, shift=line.shift)
    assert found is not None  # they are constants of the graph, or -1 and their reciprocals
    constants = {role: draft.new_constant(after, role, data) for role, data in found.items()}
    draft.change(replace(after, attributes=Affine(last), constants=constants))
    draft.tensors[middle] = replace(draft.tensors[middle], shape=draft.tensors[end].shape, layer=None)
    return True


def _sinks(draft: GraphEditor, op: Op, line: ChannelAffine) -> bool:
    """Whether the operation may come first: it must keep channels apart, and the order of values where that matters."""
    last = len(draft.shape(op, op.inputs[0])) - 1
    match op.attributes:
        case Pool2D(function="max", clamp=clamp):
            return clamp == NO_CLAMP and bool((line.scale > 0).all())
        case Pool2D(clamp=clamp):
            return clamp == NO_CLAMP
        case Reduce(function="mean", axis=axis, count=count):
            return axis + count <= last
        case Transpose(order=order):
            return order[-1] == last
        case _:
            return False


def _fold_into_consumer(draft: GraphEditor, op: Op, most_spread: float) -> bool:
    """Folds it into the next layer, through reshapes: exact where padding does not mix with the summand."""
    if not isinstance(op.attributes, Linear):
        return False
    before = draft.only_producer(op)
    shapes = []
    while before is not None and isinstance(before.attributes, Reshape):
        shapes.append(before)
        before = draft.only_producer(before)
    line = channel_affine_of(draft, before) if before is not None else None
    line = _repeated(line, draft.shape(op, op.inputs[0])[-1]) if line is not None else None
    if before is None or line is None or line.clamp != NO_CLAMP or not _is_exact(op.attributes, line):
        return False
    sizes = np.abs(line.scale)
    if most_spread < inf and sizes.max() > most_spread * sizes.min() and is_input(draft, before.inputs[0]):
        return False
    kernel = draft.constants[op.constants["kernel"]].data.astype(np.float64)
    bias = draft.constants[op.constants["bias"]].data.astype(np.float64) if "bias" in op.constants else 0.0
    scale, extra = along_inputs(op.attributes, kernel, line)
    if most_spread < inf and _coarsens(op.attributes, kernel, np.broadcast_to(scale, kernel.shape)):
        return False
    wanted = {"kernel": kernel * scale}
    if "bias" in op.constants or line.shift.any():
        wanted["bias"] = bias + extra
    found = in_single_precision(**wanted)
    if found is None:
        return False
    constants = {**op.constants, **{role: draft.new_constant(op, role, data) for role, data in found.items()}}
    (lost,) = before.outputs
    draft.remove(before)
    reader = draft.ops[shapes[-1].name] if shapes else op
    draft.change(replace(reader, inputs=before.inputs))
    draft.change(replace(draft.ops[op.name], constants=constants))
    del draft.tensors[lost]
    return True


def _coarsens(attributes: Linear, kernel: Array, scale: Array) -> bool:
    """Whether the factors, which are large where inputs are small, make the steps of quantized weights so large that
    their rounding counts more for the larger inputs. Of a depthwise convolution each input has its own steps."""
    if isinstance(attributes, DepthwiseConv2D):
        return False
    if isinstance(attributes, Conv2DTranspose):
        kernel, scale = np.swapaxes(kernel, 2, 3), np.swapaxes(scale, 2, 3)
    axes = tuple(range(kernel.ndim - 1))
    before, after = (np.abs(each).max(axis=axes) for each in (kernel, kernel * scale))
    used = (before > 0) & (after > 0)
    if not used.any():
        return False
    sizes = np.abs(scale[..., used])
    smaller = np.square(np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)).mean(axis=axes)
    return bool(np.mean(after[used] / before[used] * np.sqrt(smaller)) > MOST_COARSE)


def is_input(draft: GraphEditor, tensor: str) -> bool:
    """Whether a tensor is the model's, perhaps in another shape."""
    maker = draft.maker(tensor)
    while maker is not None and isinstance(maker.attributes, Reshape):
        tensor = maker.inputs[0]
        maker = draft.maker(tensor)
    return tensor in draft.external


def _split_off_summand(draft: GraphEditor, op: Op) -> bool:
    """Where padding prevents folding into a convolution, brings the factor and summand next to it: a kernel computes
    both in one step."""
    if not isinstance(op.attributes, Conv2D | DepthwiseConv2D):
        return False
    before = draft.only_producer(op)
    reshape = before if before is not None and isinstance(before.attributes, Reshape) else None
    before = draft.only_producer(reshape) if reshape is not None else before
    line = channel_affine_of(draft, before) if before is not None else None
    shape = draft.shape(op, op.inputs[0])
    if before is None or line is None or len(line.scale) != shape[-1]:
        return False
    found = in_single_precision(scale=line.scale, shift=line.shift)
    if found is None:
        return False
    constants = {role: draft.new_constant(before, role, data) for role, data in found.items()}
    changed = replace(before, attributes=Affine(len(shape) - 1, line.clamp), constants=constants)
    if reshape is None:
        draft.change(changed)
        return True
    (source,), (middle,), (end,) = before.inputs, before.outputs, reshape.outputs
    first = replace(reshape, inputs=(source,), outputs=(middle,))
    draft.swap(first, replace(changed, inputs=(middle,), outputs=(end,)))
    draft.tensors[middle] = replace(draft.tensors[middle], shape=draft.tensors[end].shape, layer=None)
    return True


def _repeated(line: ChannelAffine, size: int) -> ChannelAffine | None:
    """The factors and summands repeated for longer rows, as a reshape makes them."""
    times, rest = divmod(size, line.scale.size)
    return None if rest else replace(line, scale=np.tile(line.scale, times), shift=np.tile(line.shift, times))


def _is_exact(attributes: Linear, line: ChannelAffine) -> bool:
    if not line.shift.any():
        return True
    match attributes:
        case Conv2DTranspose():
            return False
        case Dense():
            return True
        case _:
            return attributes.padding == NO_PADDING


def along_inputs(attributes: Linear, kernel: Array, line: ChannelAffine) -> tuple[Array, Array]:
    """(the factors in the kernel's shape, what the summands add to each output)"""
    match attributes:
        case Dense():
            return line.scale[:, None], line.shift @ kernel
        case DepthwiseConv2D():
            return line.scale[:, None], (kernel.sum(axis=(0, 1)) * line.shift[:, None]).reshape(-1)
        case Conv2DTranspose():
            return line.scale, np.zeros(kernel.shape[2])
        case Conv2D(groups=groups):
            share = kernel.shape[3] // groups
            scale = np.repeat(line.scale.reshape(groups, -1).T, share, axis=1)
            shift = np.repeat(line.shift.reshape(groups, -1).T, share, axis=1)
            return scale, (kernel.sum(axis=(0, 1)) * shift).sum(axis=0)
