"""Merges depthwise convolutions of different lengths, each on a group of the channels and ending with the last row.

Shorter kernels are extended at their beginning by zeros, which add nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op
from nnbuild.model.graph import Quant as Scales
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.slice import Slice

ROUND = 3
"""Axes of an image."""


@dataclass(frozen=True)
class _Branch:
    """A convolution of the channels from `first` on, and of the rows from `top` on."""

    op: Op
    cuts: tuple[Op, ...]
    source: str
    top: int
    first: int
    count: int


def merge_split_depthwise(graph: Graph) -> Graph:
    uses = Counter(name for op in graph.ops for name in op.inputs)
    uses.update((*graph.outputs, *(name for s in graph.states for name in (s.before, s.after))))
    makers = {name: op for op in graph.ops for name in op.outputs}
    for join in graph.ops:
        shares = _branches(graph, join, makers, uses)
        if shares is not None:
            return merge_split_depthwise(_merged(graph, join, shares, uses))
    return graph


def _branches(graph: Graph, join: Op, makers: dict[str, Op], uses: Counter[str]) -> list[_Branch] | None:
    """The convolutions that a concatenation joins, if they cover all channels of one tensor in order."""
    part = join.attributes
    if not isinstance(part, Concatenate) or part.axis != 2 or part.clamp != NO_CLAMP or join.outer:
        return None
    if len(join.inputs) < 2 or len(graph.tensors[join.outputs[0]].shape) != ROUND:
        return None
    found = [_share(graph, name, makers, uses) for name in join.inputs]
    shares = [each for each in found if each is not None]
    if len(shares) < len(found) or len({each.source for each in shares}) > 1:
        return None
    alike = {(graph.tensors[n].dtype, graph.tensors[n].quant) for n in (*join.inputs, *join.outputs)}
    kinds = {_alone(each.op) for each in shares}
    biased = {"bias" in each.op.constants for each in shares}
    _, _, channels = graph.tensors[shares[0].source].shape
    ends = [each.first + each.count for each in shares]
    ordered = shares[0].first == 0 and ends[-1] == channels
    ordered = ordered and all(a.first + a.count == b.first for a, b in pairwise(shares))
    return shares if ordered and len(alike) == len(kinds) == len(biased) == 1 else None


def _share(graph: Graph, name: str, makers: dict[str, Op], uses: Counter[str]) -> _Branch | None:
    op = makers.get(name)
    if op is None or not isinstance(op.attributes, DepthwiseConv2D) or uses[name] != 1 or op.outer:
        return None
    x, kernel = graph.tensors[op.inputs[0]].shape, graph.constants[op.constants["kernel"]]
    plain = op.attributes.padding == ((0, 0), (0, 0)) and graph.tensors[name].shape[:2] == (1, 1)
    zero = kernel.quant is None or kernel.quant.zero_point == 0
    if not plain or not zero or op.attributes.dilation != (1, 1) or kernel.data.shape != (x[0], x[1], x[2], 1):
        return None
    source, top, first, cuts = op.inputs[0], 0, 0, list[Op]()
    while (cut := makers.get(source)) is not None and _cuts(graph, cut, uses):
        assert isinstance(cut.attributes, Slice)
        top, first = top + cut.attributes.begins[0], first + cut.attributes.begins[2]
        cuts.append(cut)
        source = cut.inputs[0]
    rows = graph.tensors[source].shape
    return _Branch(op, tuple(cuts), source, top, first, x[2]) if top + x[0] == rows[0] and x[1] == rows[1] else None


def _cuts(graph: Graph, op: Op, uses: Counter[str]) -> bool:
    part = op.attributes
    alone = isinstance(part, Slice) and uses[op.outputs[0]] == 1 and not op.outer
    return alone and isinstance(part, Slice) and len(part.begins) == ROUND and set(part.steps) == {1}


def _alone(op: Op) -> DepthwiseConv2D:
    """The same for a single window, which does not slide."""
    assert isinstance(op.attributes, DepthwiseConv2D)
    return replace(op.attributes, strides=(1, 1), dilation=(1, 1))


def _merged(graph: Graph, join: Op, shares: list[_Branch], uses: Counter[str]) -> Graph:
    source = shares[0].source
    rows, columns, channels = graph.tensors[source].shape
    constants = dict(graph.constants)
    kernels = [constants[each.op.constants["kernel"]] for each in shares]
    whole = np.zeros((rows, columns, channels, 1), kernels[0].data.dtype)
    for each, kernel in zip(shares, kernels, strict=True):
        whole[each.top :, :, each.first : each.first + each.count] = kernel.data
    names = {"kernel": f"{join.name}/kernel"}
    counts = [each.count for each in shares]
    constants[names["kernel"]] = Constant(names["kernel"], whole, _quant(kernels, counts))
    if "bias" in shares[0].op.constants:
        biases = [constants[each.op.constants["bias"]] for each in shares]
        names["bias"] = f"{join.name}/bias"
        data: Array = np.concatenate([bias.data for bias in biases])
        constants[names["bias"]] = Constant(names["bias"], data, biases[0].quant and _quant(biases, counts))
    first = replace(shares[0].op, name=join.name, attributes=_alone(shares[0].op), constants=names)
    made = replace(first, inputs=(source,), outputs=join.outputs)
    gone = {op.name for each in shares for op in (each.op, *each.cuts)}
    ops = tuple(made if op is join else op for op in graph.ops if op.name not in gone)
    lost = {name for op in graph.ops if op.name in gone for name in op.outputs}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in lost}
    return replace(graph, ops=ops, tensors=tensors, constants=constants)


def _quant(parts: list[Constant], counts: list[int]) -> Scales | None:
    """The scales of all channels; a branch with a single scale has it for each of its channels."""
    scales: list[float] = []
    for part, count in zip(parts, counts, strict=True):
        if part.quant is None:
            return None
        scales += part.quant.scales if len(part.quant.scales) == count else part.quant.scales * count
    axis = next((p.quant.axis for p in parts if p.quant is not None and p.quant.axis is not None), None)
    return Scales(tuple(scales), 0, axis)
