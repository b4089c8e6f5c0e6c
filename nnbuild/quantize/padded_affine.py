"""Folds a factor and a summand before a padded convolution into it.

The convolution's zero padding corresponds to other values before the two, one for each channel. If all channels have
the same value, int8 inputs take it as their zero point; otherwise, and with 16 bits, the input is padded with these
values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.offset import Offset
from nnbuild.ops.pad import Pad
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import NO_PADDING
from nnbuild.passes.fold_affine import ChannelAffine, along_inputs, channel_affine_of
from nnbuild.passes.graph_editor import GraphEditor, in_single_precision
from nnbuild.quantize.calibrate import Range, Ranges

Windowed = Conv2D | DepthwiseConv2D
MAX_COARSENING = 1.25
"""Factor by which the input's range may grow to include the border."""
MAX_FACTOR_RATIO = 16.0
"""Largest ratio of the factors: the weights of a filter share one scale, and those with the least factor must keep a
few steps."""
TOLERANCE = 1e-5
"""Share of the range within which border values count as equal."""


@dataclass(frozen=True)
class PaddedAffine:
    """What precedes a convolution: `scaled` is the factor and summand, `reshape` an optional reshape after it."""

    op: Op[Windowed]
    scaled: Op
    reshape: Op | None
    line: ChannelAffine

    @property
    def source(self) -> str:
        return self.scaled.inputs[0]

    @property
    def border(self) -> Array:
        """The input value that becomes zero, for each channel."""
        return -self.line.shift / self.line.scale


def fold_padded_affine(
    graph: Graph, ranges: Ranges, form: Callable[[Op], str], fixed: Callable[[Op], bool]
) -> tuple[Graph, Ranges]:
    """`fixed` tells whether the format of an operation's result does not depend on its range."""
    draft, found = GraphEditor(graph), dict(ranges)
    for op in graph.ops:
        ahead = _padded_affine(draft, op.name)
        forms = {form(ahead.scaled), form(ahead.op)} if ahead is not None else set()
        if ahead is None or len(forms) > 1 or "float" in forms:
            continue
        held = _range_with_border(draft, ahead, found, fixed)
        if held is not None:
            one = float(np.ptp(ahead.border)) <= TOLERANCE * (held.high - held.low)
            (_fold_into_zero_point if one and forms == {"int8"} else _fold_into_pad)(draft, ahead, found, held)
    return draft.finish(), found


def _padded_affine(draft: GraphEditor, name: str) -> PaddedAffine | None:
    op = draft.ops.get(name)
    if op is None or not isinstance(op.attributes, Windowed) or op.attributes.padding == NO_PADDING:
        return None
    scaled, reshape = draft.only_producer(op), None
    if scaled is not None and type(scaled.attributes) is Reshape:
        scaled, reshape = draft.only_producer(scaled), scaled
    line = channel_affine_of(draft, scaled) if scaled is not None else None
    if scaled is None or line is None or line.clamp != NO_CLAMP:
        return None
    sizes = np.abs(line.scale)
    if len(sizes) != draft.shape(op, op.inputs[0])[-1] or not 0 < sizes.max() <= MAX_FACTOR_RATIO * sizes.min():
        return None
    return PaddedAffine(cast(Op[Windowed], op), scaled, reshape, line)


def _range_with_border(
    draft: GraphEditor, ahead: PaddedAffine, ranges: Ranges, fixed: Callable[[Op], bool]
) -> Range | None:
    """The input's range including the border, or None if that makes it much coarser."""
    maker, values = draft.maker(ahead.source), ranges[ahead.source]
    whole = replace(values, low=min(values.low, 0.0), high=max(values.high, 0.0))
    held = replace(
        whole, low=min(whole.low, float(ahead.border.min())), high=max(whole.high, float(ahead.border.max()))
    )
    given = ahead.source not in draft.external if maker is None else fixed(maker)
    most = 1.0 if given else MAX_COARSENING
    return held if 0 < held.high - held.low <= most * (whole.high - whole.low) else None


def _fold_into_zero_point(draft: GraphEditor, ahead: PaddedAffine, ranges: dict[str, Range], held: Range) -> None:
    """Replaces the summand by another zero point, and folds the factor into the weights."""
    summand = -float(ahead.border.mean())
    kernel = draft.constants[ahead.op.constants["kernel"]].data.astype(np.float64)
    scale, _ = along_inputs(ahead.op.attributes, kernel, ahead.line)
    changed = _with_weights(draft, ahead.op, kernel * scale, 0.0)
    if changed is None:
        return
    shape = draft.shape(ahead.scaled, ahead.source)
    (seen,) = ahead.scaled.outputs
    draft.change(replace(ahead.scaled, attributes=Offset(shape, summand), constants={}))
    draft.change(changed)
    draft.tensors[seen] = replace(draft.tensors[seen], layer=None)
    moved = Range(held.low + summand, held.high + summand, tuple(mean + summand for mean in held.means))
    ranges |= {ahead.source: held} | dict.fromkeys([seen, ahead.op.inputs[0]], moved)


def _fold_into_pad(draft: GraphEditor, ahead: PaddedAffine, ranges: dict[str, Range], held: Range) -> None:
    """Pads the input with the border values, and removes the convolution's padding."""
    op, scaled, reshape = ahead.op, ahead.scaled, ahead.reshape
    kernel = draft.constants[op.constants["kernel"]].data.astype(np.float64)
    scale, extra = along_inputs(op.attributes, kernel, ahead.line)
    changed = _with_weights(draft, op, kernel * scale, extra)
    border = in_single_precision(border=ahead.border)
    if changed is None or border is None:
        return
    pad = replace(scaled, attributes=Pad((*op.attributes.padding, (0, 0))), constants={})
    pad = replace(pad, constants={"border": draft.new_constant(pad, "border", border["border"])})
    inner = draft.tensors[op.inputs[0]].shape
    if reshape is None:
        draft.change(pad)
    else:
        (first,), (second,) = scaled.outputs, reshape.outputs
        moved = replace(reshape, inputs=scaled.inputs, outputs=(first,))
        draft.swap(moved, replace(pad, inputs=(first,), outputs=(second,)))
        draft.tensors[first] = replace(draft.tensors[first], shape=inner, layer=None)
    (padded,) = op.inputs
    rank = len(op.outer)
    sizes = pad.attributes.shapes([inner[rank:]], {})[0]
    draft.tensors[padded] = replace(draft.tensors[padded], shape=(*op.outer, *sizes), layer=None)
    draft.change(replace(changed, attributes=replace(op.attributes, padding=NO_PADDING)))
    ranges |= dict.fromkeys([ahead.source, *scaled.outputs, padded], held)


def _with_weights(draft: GraphEditor, op: Op[Windowed], kernel: Array, extra: Array | float) -> Op[Windowed] | None:
    """The convolution with other weights, and `extra` added to its bias."""
    filters = draft.shape(op, op.outputs[0])[-1]
    bias = draft.constants[op.constants["bias"]].data.astype(np.float64) if "bias" in op.constants else 0.0
    found = in_single_precision(kernel=kernel, bias=np.broadcast_to(bias + extra, (filters,)))
    if found is None:
        return None
    constants = {**op.constants, **{role: draft.new_constant(op, role, data) for role, data in found.items()}}
    return replace(op, constants=constants)
