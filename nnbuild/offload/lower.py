"""Lowers an operation to tasks of a device, whole or in parts, or says why the device cannot compute it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.arithmetic import EXACT, TFLITE, Arithmetic
from nnbuild.numeric.rounding import INT8, Ints, ints
from nnbuild.offload.device import Device, Operator
from nnbuild.offload.shapes import CUT, Shape3, Split, extent, laid_out, pitch, spread, violations
from nnbuild.offload.task import Layout, Operation, Scaling, Task
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.device_arithmetic import channel_scales, operand_scales, operator_name, usual
from nnbuild.ops.integer import bounds, quant_of
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

OPERATIONS: dict[str, Operation] = {
    "conv2d": "conv2d",
    "depthwise_conv2d": "depthwise_conv2d",
    "dense": "dense",
    "max_pool": "max_pool",
    "average_pool": "average_pool",
    "add": "add",
    "concatenate": "max_pool",
}
"""Operation -> the operation of its tasks. Tensors are concatenated by copies: pools with windows of 1x1."""
MULTIPLIER_BITS = 31
"""Bits of a device's multipliers."""
MAX_SHIFT = 2 * MULTIPLIER_BITS
"""The largest right shift of a sum times a multiplier: beyond it nothing is left."""


class Refused(Exception):
    """Why a device cannot compute an operation."""


@dataclass(frozen=True, eq=False)
class Job:
    """An operation that a device can compute, as one task over the whole, with tensors as they lie in its memory."""

    site: Site
    operator: Operator
    task: Task
    splits: tuple[Split, ...]
    """Channel groups of the inputs, then of the output."""

    @property
    def joins(self) -> bool:
        """Whether it concatenates: each input is copied by a task of its own, unless it already lies in its place."""
        return isinstance(self.site.attributes, Concatenate)

    @property
    def in_place(self) -> bool:
        """Whether the inputs may already lie in their places: nothing is clamped."""
        return self.joins and self.task.bounds == INT8


@dataclass(frozen=True)
class Part:
    """Part of a job: half-open ranges of the output's rows, columns and channels."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    channels: tuple[int, int]


def job_of(site: Site, shapes: tuple[Shape3, ...], splits: tuple[Split, ...], device: Device) -> Job | str:
    """The job of a site, or why the device cannot compute it. `shapes` and `splits` give the tensors' shapes and
    channel groups: inputs, then the output."""
    try:
        return _job(site, shapes, splits, device)
    except Refused as reason:
        return str(reason)


def _job(site: Site, shapes: tuple[Shape3, ...], splits: tuple[Split, ...], device: Device) -> Job:
    name = operator_name(site.op)
    if name is None or name not in OPERATIONS or name not in device.operators:
        raise Refused(f"the device has no {name or site.op.kind}")
    operator = device.operators[OPERATIONS[name]]
    if site.tail or site.op.outer:
        raise Refused("it is computed along further axes")
    if site.dtypes != {"int8"}:
        raise Refused("the device computes int8 only")
    spec = operator.arithmetic
    if not isinstance(site.attributes, Concatenate):
        if site.op.arithmetic != spec and not (site.op.arithmetic is None and usual(name, spec)):
            raise Refused("the model's integers are not those of the device's arithmetic")
        _check_zero_points(site, spec)
    elif not joinable(site):
        raise Refused("its tensors have several scales, or are not concatenated along the channels")
    job = Job(site, operator, _task(OPERATIONS[name], site, shapes, splits, device, spec), splits)
    for copy, _ in copies_of(job, device):
        for quantity, (value, limit) in violations(copy.task, operator).items():
            if value < limit or quantity not in CUT or min(grain(copy, device)) < 1:
                raise Refused(f"its {quantity.replace('_', ' ')} is {value}, the device's {limit}")
    return job


def joinable(site: Site) -> bool:
    """Whether tensors are concatenated unchanged along their last axis."""
    attributes, (out,) = site.attributes, site.outputs
    assert isinstance(attributes, Concatenate)
    same = site.dtypes == {"int8"} and all(quant_of(x) == quant_of(out) for x in site.inputs)
    return same and attributes.axis == len(out.shape) - 1


def copies_of(job: Job, device: Device) -> list[tuple[Job, int]]:
    """The jobs that a job consists of, and the byte offset in the output's pixels at which each writes: one per
    concatenated input."""
    if not job.joins:
        return [(job, 0)]
    task, at, found = job.task, 0, []
    for layout in task.inputs:
        output = replace(task.output, shape=layout.shape)
        found.append((replace(job, task=replace(task, inputs=(layout,), output=output)), at))
        at += layout.pixel
    return found


def _check_zero_points(site: Site, spec: Arithmetic) -> None:
    if not spec.zero_in and any(quant_of(x).zero_point for x in site.inputs):
        raise Refused("its inputs have a zero point")
    if not spec.zero_out and quant_of(site.outputs[0]).zero_point:
        raise Refused("its outputs have a zero point")


def _task(
    name: Operation,
    site: Site,
    shapes: tuple[Shape3, ...],
    splits: tuple[Split, ...],
    device: Device,
    spec: Arithmetic,
) -> Task:
    attributes = site.attributes
    layouts = [
        laid_out((*shape[:2], extent(split, device.channels)), device.channels)
        for shape, split in zip(shapes, splits, strict=True)
    ]
    plain = Task(
        operation=name,
        name=site.op.layer or site.op.name,
        inputs=tuple(layouts[:-1]),
        output=layouts[-1],
        in_zeros=tuple(quant_of(x).zero_point for x in site.inputs),
        out_zero=quant_of(site.outputs[0]).zero_point,
        spare=spec.spare,
    )
    if isinstance(attributes, Pool2D):
        limits = bounds(attributes.clamp, site.outputs[0])
        if quant_of(site.inputs[0]) != quant_of(site.outputs[0]):
            raise Refused("its output has another scale")
        window, strides = attributes.window, attributes.strides
        return replace(plain, window=window, strides=strides, padding=attributes.padding, bounds=limits)
    if isinstance(attributes, Concatenate):
        return replace(plain, bounds=bounds(attributes.clamp, site.outputs[0]))
    if isinstance(attributes, Binary):
        if splits[0] != splits[1]:
            raise Refused("its operands lie in the device's memory in different ways")
        return _sum(plain, site.of(Binary), spec)
    if isinstance(attributes, Conv2D | DepthwiseConv2D):
        return _convolution(plain, site.of(Convolution), spec, splits[0], device)
    return _dense(plain, site.of(Dense), spec, splits[0], device)


def _sum(plain: Task, site: Site[Binary], spec: Arithmetic) -> Task:
    if len({x.shape for x in (*site.inputs, *site.outputs)}) > 1:
        raise Refused("its operands have different shapes")
    scales = tuple(_scaling(*scale, spec) for scale in operand_scales(site, spec))
    return replace(plain, scales=scales, bounds=bounds(site.attributes.clamp, site.outputs[0]))


def _scaling(multiplier: int, shift: int, spec: Arithmetic) -> Scaling:
    _check_shifts(ints([shift]), ints([multiplier]), spec)
    return Scaling(ints([multiplier]), ints([shift]), _rule(spec))


def _rule(spec: Arithmetic) -> str:
    return "twice" if (spec.scale, spec.rounding) == (TFLITE.scale, TFLITE.rounding) else "device"


def _check_shifts(shifts: Ints, multipliers: Ints, spec: Arithmetic) -> None:
    used = shifts[multipliers != 0]
    low, high = spec.shifts
    if used.size and (used.min() < low or used.max() > high):
        raise Refused(f"its scales need shifts from {used.min()} to {used.max()}, the device has {low} to {high}")


def _weights(plain: Task, site: Site, spec: Arithmetic, kernel: Ints) -> Task:
    """Adds a layer's constants; its sums must fit the device's accumulator."""
    channels = kernel.shape[-1]
    if site.constant("kernel").dtype != np.int8 or quant_of(site.constants["kernel"]).zero_point:
        raise Refused("its weights are not bytes without a zero point")
    bias = ints(site.constant("bias")) if "bias" in site.constants else np.zeros(channels, np.int64)
    _check_sums(site, kernel, bias, spec)
    return replace(
        plain,
        weights=kernel.astype(np.int8),
        bias=bias,
        scales=(_channel_scaling(site, spec, channels),),
        bounds=bounds(site.attributes.clamp, site.outputs[0]),  # type: ignore[attr-defined]
    )


def _channel_scaling(site: Site, spec: Arithmetic, channels: int) -> Scaling:
    if isinstance(site.attributes, Dense) and spec.rounding == EXACT.rounding:
        exact = site.attributes.scales(site)
        if any(scale.floating for scale in exact):
            raise Refused("its scale is so near a fraction that the products must be rounded to float64")
        if any(scale.multiplier >= 1 << MULTIPLIER_BITS for scale in exact):
            raise Refused(f"its scale needs a multiplier of more than {MULTIPLIER_BITS} bits")
        multiplier, shift = ints([scale.multiplier for scale in exact]), ints([scale.shift for scale in exact])
        if shift.min() < 1:
            raise Refused("its scale is too large for the device")
        nothing = shift > MAX_SHIFT
        away = np.array([scale.away for scale in exact])
        return Scaling(np.where(nothing, 0, multiplier), np.where(nothing, MAX_SHIFT, shift), "once", away)
    multiplier, shift = channel_scales(site, spec, channels)
    if not spec.per_channel and len({*zip(multiplier.tolist(), shift.tolist(), strict=True)}) > 1:
        raise Refused("it has a scale for every channel, the device one for all")
    _check_shifts(shift, multiplier, spec)
    return Scaling(multiplier, shift, _rule(spec))


def _check_sums(site: Site, kernel: Ints, bias: Ints, spec: Arithmetic) -> None:
    x = quant_of(site.inputs[0])
    flat = kernel.reshape(-1, len(bias))
    ends = np.stack([flat * (-128 - x.zero_point), flat * (127 - x.zero_point)])
    most = max(int((ends.max(axis=0).sum(axis=0) + bias).max()), -int((ends.min(axis=0).sum(axis=0) + bias).min()))
    if most >= 1 << (spec.acc_bits - 1):
        raise Refused(f"its sums need {most.bit_length() + 1} bits, the device has {spec.acc_bits}")
    if np.abs(bias).max(initial=0) >= 1 << (spec.bias_bits - 1):
        raise Refused(f"its biases need more than {spec.bias_bits} bits")


def _convolution(plain: Task, site: Site[Convolution], spec: Arithmetic, split: Split, device: Device) -> Task:
    attributes = site.attributes
    assert isinstance(attributes, Conv2D | DepthwiseConv2D)
    kernel = ints(site.constant("kernel"))
    wide = any(d > 1 and size > 1 for d, size in zip(attributes.dilation, kernel.shape, strict=False))
    if wide or getattr(attributes, "groups", 1) != 1 or attributes.once:
        raise Refused("it is dilated, in groups, or rounded once")
    if isinstance(attributes, DepthwiseConv2D):
        if kernel.shape[3] != 1:
            raise Refused("it makes several output channels from one input channel")
        kernel = kernel[..., 0]
    window = (kernel.shape[0], kernel.shape[1])
    shaped = replace(plain, window=window, strides=attributes.strides, padding=attributes.padding)
    if isinstance(attributes, Conv2D):
        return _weights(shaped, site, spec, spread(kernel, 2, split, device.channels))
    return _spread_channels(_weights(shaped, site, spec, kernel), split, device)


def _spread_channels(task: Task, split: Split, device: Device) -> Task:
    """For a depthwise convolution, whose output channels lie where the input channels do."""
    if len(split) == 1 or task.weights is None or task.bias is None:
        return task

    def along(values: Array) -> Ints:
        return ints(values) if len(values) == 1 else spread(values, 0, split, device.channels)

    scales = tuple(
        replace(scale, multiplier=along(scale.multiplier), shift=along(scale.shift)) for scale in task.scales
    )
    weights = spread(task.weights, 2, split, device.channels).astype(np.int8)
    return replace(task, weights=weights, bias=along(task.bias), scales=scales)


def _dense(plain: Task, site: Site[Dense], spec: Arithmetic, split: Split, device: Device) -> Task:
    """Treats the input as all bytes of the tensor in the device's memory, with zero weights for the padding between
    pixels."""
    height, width, channels = plain.inputs[0].shape
    pixel = plain.inputs[0].pixel
    kernel = ints(site.constant("kernel"))
    if height * width * sum(split) != kernel.shape[0]:
        raise Refused("it computes several rows")
    apart = spread(kernel.reshape(height * width, sum(split), -1), 1, split, device.channels)
    filled = np.pad(apart, ((0, 0), (0, pixel - channels), (0, 0)))
    count = height * width * pixel
    flat = replace(plain, inputs=(Layout((1, 1, count), count, count),))
    return _weights(flat, site, spec, filled.reshape(count, -1))


# --- parts ---


def part_of(task: Task, part: Part) -> tuple[Task, tuple[tuple[int, int], tuple[int, int]]]:
    """The task that computes a part, and the input rows and columns that it reads. Layouts keep their pitches, so a
    part is an address and a shape."""
    (top, bottom), rows = _edge(part.rows, task, 0)
    (left, right), columns = _edge(part.columns, task, 1)
    first, last = part.channels
    whole = task.output.shape[2] == last - first
    along = task.operation not in ("conv2d", "dense")
    """Whether output channels correspond to input channels."""
    inputs = tuple(
        replace(x, shape=(rows[1] - rows[0], columns[1] - columns[0], last - first if along else x.shape[2]))
        for x in task.inputs
    )
    size = (part.rows[1] - part.rows[0], part.columns[1] - part.columns[0], last - first)
    cut = replace(task, inputs=inputs, output=replace(task.output, shape=size), padding=((top, bottom), (left, right)))
    return (cut if whole else _channels(cut, first, last)), (rows, columns)


def _edge(span: tuple[int, int], task: Task, axis: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """For a range of outputs: ((padding before, after), (first input, end of inputs))."""
    size, stride, kernel, pad = task.inputs[0].shape[axis], task.strides[axis], task.window[axis], task.padding[axis][0]
    begin, end = span[0] * stride - pad, (span[1] - 1) * stride - pad + kernel
    return (max(0, -begin), max(0, end - size)), (max(0, begin), min(size, end))


def _channels(task: Task, first: int, last: int) -> Task:
    def cut(scale: Scaling) -> Scaling:
        if len(scale.multiplier) == 1:
            return scale
        away = scale.away[first:last] if scale.away is not None else None
        return replace(scale, multiplier=scale.multiplier[first:last], shift=scale.shift[first:last], away=away)

    if task.weights is None or task.bias is None:
        return task
    scales = tuple(cut(scale) for scale in task.scales)
    return replace(task, weights=task.weights[..., first:last], bias=task.bias[first:last], scales=scales)


def moving(task: Task, operation: Operation, here: Layout, there: Layout) -> Task:
    """The task that copies a tensor, or a part of one."""
    return Task(operation=operation, name=task.name, inputs=(here,), output=there)


def bytes_of(shape: Shape3, device: Device) -> int:
    return shape[0] * shape[1] * pitch(shape[2], device.channels)


def grain(job: Job, device: Device) -> Shape3:
    """The most output rows, columns and channels of one task."""
    task, limits = job.task, job.operator.limits
    sizes = list(task.output.shape)
    for quantity, axis in CUT.items():
        if quantity not in limits:
            continue
        most = limits[quantity][1]
        if quantity.startswith("in_"):
            if most >= task.inputs[0].shape[axis]:
                continue
            most = (most - task.window[axis]) // task.strides[axis] + 1
        sizes[axis] = min(sizes[axis], most)
    if sizes[2] < task.output.shape[2]:
        sizes[2] -= sizes[2] % device.channels
    return sizes[0], sizes[1], sizes[2]


def parts_of(job: Job, rows: tuple[int, int], device: Device) -> Iterator[Part]:
    """The parts in which some output rows are computed."""
    most = grain(job, device)
    _, width, channels = job.task.output.shape
    for first_channel in range(0, channels, most[2]):
        for first in range(*rows, most[0]):
            for left in range(0, width, most[1]):
                yield Part(
                    (first, min(first + most[0], rows[1])),
                    (left, min(left + most[1], width)),
                    (first_channel, min(first_channel + most[2], channels)),
                )
