"""What every operation does along the time axis: nothing, a sliding window, or what needs all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from nnbuild.model.graph import Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose


@dataclass(frozen=True)
class Each:
    """Row by row; `axis` is where the rows lie in the output."""

    axis: int


@dataclass(frozen=True)
class Sliding:
    """Output row j reads the inputs j * stride - before, `kernel` of them, `dilation` apart; `after` pads the end."""

    axis: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def span(self) -> int:
        return (self.kernel - 1) * self.dilation + 1


@dataclass(frozen=True)
class Whole:
    """All rows at once, and why."""

    reason: str


@dataclass(frozen=True)
class Carried:
    """New rows alone, with states that go on from step to step; a sequence comes out along `axis`."""

    axis: int = 0


Along = Each | Sliding | Whole | Carried


def along(graph: Graph, op: Op, axis: int, whole_stream: bool = False) -> Along:
    """How an operation treats the axis `axis` of those of its inputs that are streamed, as a window or as the stream
    since its beginning."""
    if whole_stream and isinstance(op.attributes, Recurrent) and not op.outer and len(op.inputs) == 1 and axis == 0:
        return Whole("it goes backwards") if op.attributes.backwards else Carried()
    if axis < len(op.outer):
        return Each(axis)
    place = axis - len(op.outer)
    shapes = [graph.tensors[name].shape[len(op.outer) :] for name in op.inputs]
    found = _along(op.attributes, shapes, {r: graph.constants[n].data.shape for r, n in op.constants.items()}, place)
    return replace(found, axis=found.axis + len(op.outer)) if isinstance(found, Each | Sliding) else found


def _along(attributes: Attributes, shapes: Sequence[Shape], constants: dict[str, Shape], axis: int) -> Along:
    shape = shapes[0]
    last = len(shape) - 1
    match attributes:
        case Activation() | Convert():
            return Each(axis)
        case Dense() | LRN():
            return Each(axis) if axis < last else Whole("it mixes features along that axis")
        case Affine():
            return Each(axis) if attributes.axis != axis else Whole("its factors differ along that axis")
        case PReLU():
            return Each(axis) if _same_for_all(constants["slope"], shape, axis) else Whole("its slopes differ there")
        case Softmax():
            inside = attributes.axis <= axis < attributes.axis + attributes.count
            return Whole("a softmax over time") if inside else Each(axis)
        case LayerNorm():
            return Each(axis) if axis <= last - attributes.count else Whole("a normalization over time")
        case Binary():
            fit = all(_same_for_all(other, shape, axis) for other in constants.values())
            alike = all(len(other) == len(shape) for other in shapes)
            return Each(axis) if fit and alike else Whole("its constant differs from row to row")
        case Concatenate():
            return Each(axis) if attributes.axis != axis else Whole("it joins rows")
        case Transpose():
            return Each(attributes.order.index(axis))
        case Reshape():
            return _reshaped(shape, attributes.shape, axis)
        case Reduce():
            return _reduced(attributes, axis)
        case Slice():
            begin, step = attributes.begins[axis], attributes.steps[axis]
            if (begin, step, attributes.counts[axis]) == (0, 1, shape[axis]):
                return Each(axis)
            return Sliding(axis, stride=step, before=-begin) if step > 0 else Whole("it turns time round")
        case Pad():
            before, after = attributes.amounts[axis]
            if (before or after) and (attributes.value or constants):
                return Whole("what lies before it is not zero")
            return Sliding(axis, before=before, after=after) if before or after else Each(axis)
        case Conv2D() | DepthwiseConv2D() | Pool2D():
            return _window(attributes, constants, axis)
        case Recurrent():
            return Whole("a recurrent layer begins anew with every window")
    return Whole(f"{attributes.kind} is not computed row by row")


def _window(attributes: Conv2D | DepthwiseConv2D | Pool2D, constants: dict[str, Shape], axis: int) -> Along:
    if axis > 1:
        return Whole("it mixes features along that axis")
    kernel = attributes.window[axis] if isinstance(attributes, Pool2D) else constants["kernel"][axis]
    dilation = 1 if isinstance(attributes, Pool2D) else attributes.dilation[axis]
    before, after = attributes.padding[axis]
    if (kernel, attributes.strides[axis], before, after) == (1, 1, 0, 0):
        return Each(axis)
    return Sliding(axis, kernel, attributes.strides[axis], dilation, before, after)


def _same_for_all(constant: Shape, shape: Shape, axis: int) -> bool:
    """Whether a constant, spread over a tensor, is the same at every place of the axis."""
    place = axis - (len(shape) - len(constant))
    return place < 0 or constant[place] == 1


def _reshaped(shape: Shape, to: Shape, axis: int) -> Along:
    """Where the axis is afterwards: what lies before it must stay together, and what lies behind it."""
    before = prod(shape[:axis])
    for place, size in enumerate(to):
        if size == shape[axis] and prod(to[:place]) == before:
            return Each(place)
    return Whole("its rows become one vector")


def _reduced(attributes: Reduce, axis: int) -> Along:
    if attributes.axis <= axis < attributes.axis + attributes.count:
        return Whole(f"a {attributes.function} over time")
    return Each(axis if attributes.keep or axis < attributes.axis else axis - attributes.count)


def parted(op: Op, found: Each | Sliding, rows: int, before: int, after: int, begin: int | None = None) -> Attributes:
    """The operation for a part of the time: so many output rows, with these pads; a slice begins at `begin`."""
    attributes, axis = op.attributes, found.axis - len(op.outer)
    if axis < 0:
        return attributes
    match attributes:
        case Conv2D() | DepthwiseConv2D():
            return replace(attributes, padding=_put(attributes.padding, axis, (before, after)))
        case Pool2D():
            return replace(attributes, padding=_put(attributes.padding, axis, (before, after)))
        case Pad():
            return replace(attributes, amounts=_put(attributes.amounts, axis, (before, after)))
        case Slice():
            begins = attributes.begins if begin is None else _put(attributes.begins, axis, begin)
            return replace(attributes, begins=begins, counts=_put(attributes.counts, axis, rows))
        case Reshape():
            return replace(attributes, shape=_put(attributes.shape, axis, rows))
    return attributes


def _put(values: tuple, place: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:place], value, *values[place + 1 :])
