"""Folds zero pads into the padding of the convolution that reads them, and pads of the lowest number into a maximum
pool's."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.numeric.rounding import limits
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import Padding
from nnbuild.passes.graph_editor import GraphEditor

T = TypeVar("T")
LOWEST = -float(np.finfo(np.float32).max)


def fold_pads(graph: Graph) -> Graph:
    """For a maximum the lowest number equals no input; a zero does not, nor does it for an average."""
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        if isinstance(op.attributes, Conv2D | DepthwiseConv2D):
            _fold(draft, op, op.attributes)
        elif isinstance(op.attributes, Pool2D) and op.attributes.function == "max":
            _fold_lowest(draft, op, op.attributes)
    return draft.finish()


def _fold(draft: GraphEditor, op: Op, attributes: Conv2D | DepthwiseConv2D) -> None:
    before = draft.only_producer(op)
    if before is None:
        return
    if isinstance(before.attributes, Pad) and not before.constants:
        amounts = _spatial(before.attributes)
        if amounts is not None:
            draft.remove(before)
            del draft.tensors[op.inputs[0]]
            draft.change(_padded(op, attributes, before.inputs[0], amounts))
        return
    pad = draft.only_producer(before) if isinstance(before.attributes, Reshape) else None
    if pad is None or not isinstance(pad.attributes, Pad) or pad.constants:
        return
    source, given = pad.inputs[0], draft.shape(before, before.inputs[0])
    amounts = _spatial(replace(pad.attributes, amounts=_as_image(pad.attributes.amounts, (0, 0))))
    if amounts is None or _as_image(given, 1) != draft.shape(before, before.outputs[0]):
        return
    inner = _as_image(draft.shape(pad, source), 1)
    (padded,) = before.inputs
    draft.remove(pad)
    del draft.tensors[padded]
    draft.change(replace(before, attributes=Reshape(inner), inputs=(source,)))
    (middle,) = before.outputs
    draft.tensors[middle] = replace(draft.tensors[middle], shape=(*before.outer, *inner), layer=None)
    draft.change(_padded(op, attributes, middle, amounts))


def _fold_lowest(draft: GraphEditor, op: Op, pool: Pool2D) -> None:
    before = draft.only_producer(op)
    if before is None or not isinstance(before.attributes, Pad) or before.constants:
        return
    pad, tensor = before.attributes, draft.tensors[op.inputs[0]]
    amounts = _spatial(replace(pad, value=0.0))
    low = LOWEST if tensor.quant is None else (limits(tensor.dtype)[0] - tensor.quant.zero_point) * tensor.quant.scale
    if amounts is None or pad.value > low or tensor.is_whole:
        return
    padding = (_sum(pool.padding[0], amounts[0]), _sum(pool.padding[1], amounts[1]))
    if any(max(around) >= size for around, size in zip(padding, pool.window, strict=True)):
        return
    draft.remove(before)
    del draft.tensors[op.inputs[0]]
    draft.change(replace(op, attributes=replace(pool, padding=padding), inputs=(before.inputs[0],)))


def _as_image(axes: tuple[T, ...], one: T) -> tuple[T, ...]:
    """Three axes: those of a row get a first one, those of a single image lose theirs."""
    while axes[:1] == (one,) and len(axes) > 3:
        axes = axes[1:]
    return (one,) * (3 - len(axes)) + axes


def _spatial(pad: Pad) -> Padding | None:
    """The padding of rows and columns, if it is all there is and consists of zeros."""
    amounts = pad.amounts
    if len(amounts) != 3 or amounts[2] != (0, 0) or pad.value != 0:
        return None
    return amounts[0], amounts[1]


def _padded(op: Op, attributes: Conv2D | DepthwiseConv2D, source: str, amounts: Padding) -> Op:
    (rows, columns), (more_rows, more_columns) = attributes.padding, amounts
    padding = (_sum(rows, more_rows), _sum(columns, more_columns))
    return replace(op, attributes=replace(attributes, padding=padding), inputs=(source,))


def _sum(one: Pair, other: Pair) -> Pair:
    return one[0] + other[0], one[1] + other[1]
