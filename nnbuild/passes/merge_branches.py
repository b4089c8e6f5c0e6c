"""Merges the terms of a sum that are linear in the same values: convolutions side by side, with factors per channel and
the values themselves, as networks are trained that are "re-parameterized" afterwards (RepVGG, MobileOne, FastViT).

A smaller window lies within a larger one. Everything is computed in float64 and rounded to float32 once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Shape
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import NO_CLAMP, Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.windows import Padding
from nnbuild.passes.fold_affine import channel_affine_of
from nnbuild.passes.graph_editor import GraphEditor, in_single_precision

COARSER = 2.0
"""By how many times more the rounding of 8-bit weights may count than apart."""
OUTPUT_STEPS = {"int8": 2 * 6 / 256, "int16": 0.0}
"""The share of outputs, as a root mean square, that it may be anyway: in bytes twice what their own rounding is."""

MOST_SUMS = 16
"""Within one that are searched for branches: a loop that adds up may be unrolled to a thousand."""


@dataclass(frozen=True, eq=False)
class _Term:
    """A summand that is linear in `source`; the sum `parent` reads it. `op` computes it; without one it is the source
    itself. `kernel` is that of a convolution, or a factor per channel."""

    parent: str
    tensor: str
    source: str
    op: Op | None
    kernel: Array
    bias: Array

    @property
    def attributes(self) -> Conv2D | DepthwiseConv2D | None:
        found = self.op.attributes if self.op is not None else None
        return found if isinstance(found, Conv2D | DepthwiseConv2D) else None


def merge_branches(graph: Graph, form: str = "float") -> Graph:
    """In integers convolutions stay apart where together their weights would have much coarser steps."""
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        while (op := draft.ops.get(name)) is not None and _merges_two(draft, op, form):
            pass
    return draft.finish()


def _merges_two(draft: GraphEditor, root: Op, form: str) -> bool:
    if not _is_sum(draft, root):
        return False
    terms = [*_terms(draft, root)]
    for host, guest in permutations(terms, 2):
        if host.op is None or host.source != guest.source or host.tensor == guest.tensor:
            continue
        kernel = _together(draft, host, guest)
        if kernel is None or (form != "float" and _coarsens(host, guest, kernel, form)):
            continue
        roles = ("scale", "shift") if host.attributes is None else ("kernel", "bias")
        found = in_single_precision(**dict(zip(roles, (kernel, host.bias + guest.bias), strict=True)))
        if found is None:
            continue
        constants = {role: draft.new_constant(host.op, role, data) for role, data in found.items()}
        attributes = host.attributes or Affine(len(draft.shape(host.op, host.source)) - 1)
        draft.change(replace(host.op, attributes=attributes, constants=constants))
        _leave_out(draft, guest, root)
        return True
    return False


def _is_sum(draft: GraphEditor, op: Op) -> bool:
    """Of two tensors of one shape."""
    attributes = op.attributes
    if not isinstance(attributes, Binary) or attributes.function != "add" or len({*op.inputs}) < 2:
        return False
    found = [draft.tensors[name] for name in (*op.inputs, *op.outputs)]
    alike = len({each.shape for each in found}) == 1 and all(e.quant is None and e.dtype == "float32" for e in found)
    return alike and bool(found[0].shape)


def _terms(draft: GraphEditor, root: Op) -> Iterator[_Term]:
    """The linear ones, also of sums within it."""
    sums = [root]
    for op in sums:
        for tensor in op.inputs:
            channels = draft.tensors[tensor].shape[-1]
            yield _Term(op.name, tensor, tensor, None, np.ones(channels), np.zeros(channels))
            maker = draft.maker(tensor)
            alone = maker is not None and tensor not in draft.pinned and len(draft.readers(tensor)) == 1
            if maker is None or not alone or len(maker.outputs) > 1 or maker.outer != op.outer:
                continue
            if _is_sum(draft, maker) and maker.attributes == Binary("add"):
                sums += [maker] if len(sums) < MOST_SUMS else []
            elif (found := _linear(draft, op, maker, channels)) is not None:
                yield found


def _linear(draft: GraphEditor, parent: Op, op: Op, channels: int) -> _Term | None:
    source, tensor = op.inputs[0], op.outputs[0]
    if isinstance(op.attributes, Conv2D | DepthwiseConv2D):
        held = {role: draft.constants[name] for role, name in op.constants.items()}
        if op.attributes.clamp != NO_CLAMP or any(each.quant is not None for each in held.values()):
            return None
        bias = held["bias"].data.astype(np.float64) if "bias" in held else np.zeros(channels)
        return _Term(parent.name, tensor, source, op, held["kernel"].data.astype(np.float64), bias)
    line = channel_affine_of(draft, op)
    if line is None or line.clamp != NO_CLAMP:
        return None
    return _Term(parent.name, tensor, source, op, line.scale, line.shift)


def _together(draft: GraphEditor, host: _Term, guest: _Term) -> Array | None:
    """The kernel of both; None where the host's cannot hold the guest's."""
    large, small = host.attributes, guest.attributes
    if large is None:
        return host.kernel + guest.kernel if small is None else None
    if small is None:
        if large.strides != (1, 1) or draft.tensors[host.source].shape != draft.tensors[host.tensor].shape:
            return None
        places = _places_within(large.padding, large.dilation, host.kernel.shape, ((0,), (0,)))
        return None if places is None else host.kernel + _of_factors(large, host.kernel, guest.kernel, places)
    alike = replace(small, padding=large.padding, dilation=large.dilation) == large
    if not alike or host.kernel.shape[2:] != guest.kernel.shape[2:]:
        return None
    rows, columns = (_offsets(small.padding[i][0], small.dilation[i], guest.kernel.shape[i]) for i in (0, 1))
    places = _places_within(large.padding, large.dilation, host.kernel.shape, (rows, columns))
    if places is None:
        return None
    made = host.kernel.copy()
    made[np.ix_(*places)] += guest.kernel
    return made


def _offsets(padding: int, dilation: int, size: int) -> Shape:
    """Where the taps of an axis read, from the place of the output on."""
    return tuple(tap * dilation - padding for tap in range(size))


def _places_within(
    padding: Padding, dilation: Pair, shape: Shape, offsets: tuple[Shape, Shape]
) -> tuple[list[int], list[int]] | None:
    """The rows and columns of a kernel that read there, if it has all of them."""
    found = []
    for axis, wanted in enumerate(offsets):
        own = _offsets(padding[axis][0], dilation[axis], shape[axis])
        if not {*wanted} <= {*own}:
            return None
        found.append([own.index(each) for each in wanted])
    return found[0], found[1]


def _of_factors(
    attributes: Conv2D | DepthwiseConv2D, kernel: Array, factors: Array, places: tuple[list[int], list[int]]
) -> Array:
    """A kernel of that shape with one tap, which multiplies each channel by its factor."""
    made, ((row,), (column,)) = np.zeros_like(kernel), places
    if isinstance(attributes, DepthwiseConv2D):
        made[row, column, :, 0] = factors
    else:
        channels = np.arange(len(factors))
        made[row, column, channels % kernel.shape[2], channels] = factors
    return made


def _coarsens(host: _Term, guest: _Term, kernel: Array, form: str) -> bool:
    """Whether rounding the weights to 8 bits counts much more than in both apart, and than rounding the outputs."""
    if host.attributes is None:
        return False
    apart = sum(_rounding(each) for each in (host, guest) if each.attributes is not None)
    together = _rounding(replace(host, kernel=kernel))
    return together > max(COARSER**2 * apart, OUTPUT_STEPS[form] ** 2 * float(np.square(kernel).sum()))


def _rounding(term: _Term) -> float:
    """The sum of squares of the steps of all weights, which have one for each output channel."""
    depthwise = isinstance(term.attributes, DepthwiseConv2D)
    rows = term.kernel.reshape(-1, term.kernel.shape[2] * term.kernel.shape[3] if depthwise else term.kernel.shape[3])
    return float(len(rows) * np.square(np.abs(rows).max(axis=0) / 127).sum())


def _leave_out(draft: GraphEditor, guest: _Term, root: Op) -> None:
    """Removes a summand; what was added to it takes the place of their sum."""
    parent = draft.ops[guest.parent]
    (other,) = (name for name in parent.inputs if name != guest.tensor)
    if guest.op is not None:
        draft.remove(guest.op)
        del draft.tensors[guest.tensor]
    if parent.name == root.name:
        before = draft.maker(other)
        assert before is not None and isinstance(parent.attributes, Binary)
        changed: Any = before.attributes  # the host's, or those of a sum with it
        draft.absorb(replace(before, attributes=replace(changed, clamp=parent.attributes.clamp)), parent)
    else:
        draft.change(replace(parent, inputs=(other,)))
        draft.bypass(draft.ops[parent.name])
