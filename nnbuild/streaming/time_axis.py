"""Classifies each operation's behaviour along the time axis: row by row, a sliding window, or all rows at once."""

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
from nnbuild.ops.lookup import Lookup
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
class RowWise:
    """Row by row; `axis` is the axis of rows in the output."""

    axis: int


@dataclass(frozen=True)
class Sliding:
    """Output row j reads `kernel` input rows from j * stride - before on, `dilation` apart; `after` pads the end."""

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
class AllRows:
    """All rows at once, and why."""

    reason: str


@dataclass(frozen=True)
class Stateful:
    """New rows only, with states carried from step to step; a sequence comes out along `axis`."""

    axis: int = 0


Behaviour = RowWise | Sliding | AllRows | Stateful


def time_behaviour(graph: Graph, op: Op, axis: int, whole_stream: bool = False) -> Behaviour:
    """How an operation treats the axis `axis` of its streamed inputs, seen as a window or as the whole stream."""
    if whole_stream and isinstance(op.attributes, Recurrent) and not op.outer and len(op.inputs) == 1 and axis == 0:
        return AllRows("it goes backwards") if op.attributes.backwards else Stateful()
    if axis < len(op.outer):
        return RowWise(axis)
    place = axis - len(op.outer)
    shapes = [graph.tensors[name].shape[len(op.outer) :] for name in op.inputs]
    found = _behaviour(
        op.attributes, shapes, {r: graph.constants[n].data.shape for r, n in op.constants.items()}, place
    )
    return replace(found, axis=found.axis + len(op.outer)) if isinstance(found, RowWise | Sliding) else found


def _behaviour(attributes: Attributes, shapes: Sequence[Shape], constants: dict[str, Shape], axis: int) -> Behaviour:
    shape = shapes[0]
    last = len(shape) - 1
    match attributes:
        case Activation() | Convert() | Lookup():
            return RowWise(axis)
        case Dense() | LRN():
            return RowWise(axis) if axis < last else AllRows("it mixes features along that axis")
        case Affine():
            return RowWise(axis) if attributes.axis != axis else AllRows("its factors differ along that axis")
        case PReLU():
            return (
                RowWise(axis) if _same_for_all(constants["slope"], shape, axis) else AllRows("its slopes differ there")
            )
        case Softmax():
            inside = attributes.axis <= axis < attributes.axis + attributes.count
            return AllRows("a softmax over time") if inside else RowWise(axis)
        case LayerNorm():
            return RowWise(axis) if axis <= last - attributes.count else AllRows("a normalization over time")
        case Binary():
            fit = all(_same_for_all(other, shape, axis) for other in constants.values())
            alike = all(len(other) == len(shape) for other in shapes)
            return RowWise(axis) if fit and alike else AllRows("its constant differs from row to row")
        case Concatenate():
            return RowWise(axis) if attributes.axis != axis else AllRows("it joins rows")
        case Transpose():
            return RowWise(attributes.order.index(axis))
        case Reshape():
            return _reshaped(shape, attributes.shape, axis)
        case Reduce():
            return _reduced(attributes, axis)
        case Slice():
            begin, step = attributes.begins[axis], attributes.steps[axis]
            if (begin, step, attributes.counts[axis]) == (0, 1, shape[axis]):
                return RowWise(axis)
            return Sliding(axis, stride=step, before=-begin) if step > 0 else AllRows("it reverses time")
        case Pad():
            before, after = attributes.amounts[axis]
            if (before or after) and (attributes.value or constants):
                return AllRows("its padding is not zero")
            return Sliding(axis, before=before, after=after) if before or after else RowWise(axis)
        case Conv2D() | DepthwiseConv2D() | Pool2D():
            return _window(attributes, constants, axis)
        case Recurrent():
            return AllRows("it has a mask" if attributes.masked else "a recurrent layer restarts with every window")
    return AllRows(f"{attributes.kind} is not computed row by row")


def _window(attributes: Conv2D | DepthwiseConv2D | Pool2D, constants: dict[str, Shape], axis: int) -> Behaviour:
    if axis > 1:
        return AllRows("it mixes features along that axis")
    kernel = attributes.window[axis] if isinstance(attributes, Pool2D) else constants["kernel"][axis]
    dilation = 1 if isinstance(attributes, Pool2D) else attributes.dilation[axis]
    before, after = attributes.padding[axis]
    if (kernel, attributes.strides[axis], before, after) == (1, 1, 0, 0):
        return RowWise(axis)
    return Sliding(axis, kernel, attributes.strides[axis], dilation, before, after)


def _same_for_all(constant: Shape, shape: Shape, axis: int) -> bool:
    """Whether a constant, broadcast over a tensor, is the same along the axis."""
    place = axis - (len(shape) - len(constant))
    return place < 0 or constant[place] == 1


def _reshaped(shape: Shape, to: Shape, axis: int) -> Behaviour:
    """The axis after a reshape: dimensions before it must stay together, and so must those after it."""
    before = prod(shape[:axis])
    for place, size in enumerate(to):
        if size == shape[axis] and prod(to[:place]) == before:
            return RowWise(place)
    return AllRows("its rows become one vector")


def _reduced(attributes: Reduce, axis: int) -> Behaviour:
    if attributes.axis <= axis < attributes.axis + attributes.count:
        return AllRows(f"a {attributes.function} over time")
    return RowWise(axis if attributes.keep or axis < attributes.axis else axis - attributes.count)


def for_part(
    op: Op, found: RowWise | Sliding, rows: int, before: int, after: int, begin: int | None = None
) -> Attributes:
    """The operation for a part of the rows: `rows` output rows with this padding; a slice begins at `begin`."""
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
