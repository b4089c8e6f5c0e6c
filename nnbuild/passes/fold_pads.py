"""Folds zero pads into the padding of the convolution that reads them, and pads of the lowest number into a maximum
pool's."""

from __future__ import annotations

from dataclasses import replace

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
    size, row = draft.shape(before, before.inputs[0]), draft.shape(before, before.outputs[0])
    amounts = _spatial(pad.attributes, flat=True)
    if amounts is None or row != (1, *size):  # only a one-dimensional convolution's reshape to a row
        return
    source = pad.inputs[0]
    (padded,) = before.inputs
    draft.remove(pad)
    del draft.tensors[padded]
    draft.change(replace(before, attributes=Reshape((1, *draft.shape(pad, source))), inputs=(source,)))
    (middle,) = before.outputs
    shape = (*before.outer, 1, *draft.shape(pad, source))
    draft.tensors[middle] = replace(draft.tensors[middle], shape=shape, layer=None)
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


def _spatial(pad: Pad, flat: bool = False) -> Padding | None:
    """The padding of rows and columns, if it is all there is and consists of zeros."""
    amounts: tuple[Pair, ...] = ((0, 0), *pad.amounts) if flat else pad.amounts
    if len(amounts) != 3 or amounts[2] != (0, 0) or pad.value != 0:
        return None
    return amounts[0], amounts[1]


def _padded(op: Op, attributes: Conv2D | DepthwiseConv2D, source: str, amounts: Padding) -> Op:
    (rows, columns), (more_rows, more_columns) = attributes.padding, amounts
    padding = (_sum(rows, more_rows), _sum(columns, more_columns))
    return replace(op, attributes=replace(attributes, padding=padding), inputs=(source,))


def _sum(one: Pair, other: Pair) -> Pair:
    return one[0] + other[0], one[1] + other[1]
