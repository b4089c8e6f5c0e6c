"""Turns the axes of a softmax to the end, and back behind it, where the three steps together take less time.

Kernels of vectors compute a softmax over contiguous values only; other ones take a value at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import around
from nnbuild.ops.site import site_of
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target

LEAST_GAIN = 0.25
"""The share of its cycles that turning must save: it takes two more functions, and prices of short rows are rough."""


def turn_softmaxes(graph: Graph, target: Target) -> Graph:
    """Not where memory or code matter more than time, as the copy takes both, nor where each tensor is looked at."""
    if target.optimize != "speed" or target.max_ram is not None or target.keep_tensors:
        return graph
    for op in graph.ops:
        turned = _turned(graph, op, target) if isinstance(op.attributes, Softmax) else None
        graph = graph if turned is None else turned
    return graph


def _turned(graph: Graph, op: Op, target: Target) -> Graph | None:
    """The graph with the softmax turned; None where its values are contiguous or it would save too little."""
    site = site_of(graph, op).of(Softmax)
    axis, size = site.attributes.axis, site.attributes.count
    if around(site.shape(), axis, size)[2] == 1:
        return None
    rank = len(site.shape())
    order = (*range(axis), *range(axis + size, rank), *range(axis, axis + size))
    shape = tuple(site.shape()[a] for a in order)
    names = _unused(op.name, graph)
    there, rows = (
        replace(tensor, name=next(names), shape=(*op.outer, *shape), layer=None)
        for tensor in (site.inputs[0], site.outputs[0])
    )
    back = tuple(order.index(a) for a in range(rank))
    chain = (
        replace(op, name=there.name, attributes=Transpose(order), outputs=(there.name,)),
        replace(op, attributes=Softmax(rank - size, size), inputs=(there.name,), outputs=(rows.name,)),
        replace(op, name=rows.name, attributes=Transpose(back), inputs=(rows.name,)),
    )
    tensors = {**graph.tensors, there.name: there, rows.name: rows}
    ops = tuple(new for old in graph.ops for new in (chain if old is op else (old,)))
    turned = replace(graph, tensors=tensors, ops=ops)
    gains = _cycles(turned, chain, target) < (1 - LEAST_GAIN) * _cycles(graph, (op,), target)
    return turned if gains else None


def _unused(name: str, graph: Graph) -> Iterator[str]:
    """Names that neither a tensor nor an operation has."""
    taken = {*graph.tensors, *(op.name for op in graph.ops)}
    return (each for i in count(1) if (each := f"{name}/turned_{i}") not in taken)


def _cycles(graph: Graph, ops: tuple[Op, ...], target: Target) -> float:
    return sum(choose(site_of(graph, op), target).price.cycles for op in ops)
