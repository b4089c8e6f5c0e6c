"""Slices and joins of whole rows that need no copy: what is taken is read where it lies, what is joined is written
where it belongs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.known import Known
from nnbuild.ops.reshape import Join, Part, Reshape
from nnbuild.ops.slice import Slice


def without_copies(graph: Graph, alignment: int) -> Graph:
    """Rows must begin at a multiple of so many bytes to be computed with where they lie."""
    taken = {*graph.inputs, *graph.outputs, *(name for s in graph.states for name in (s.before, s.after))}
    uses = Counter(name for op in graph.ops for name in op.inputs)
    makers = {name: op for op in graph.ops for name in op.outputs}
    ops = [_part(graph, op, taken, alignment) or op for op in graph.ops]
    views = [op for op in ops if isinstance(op.attributes, Reshape)]
    viewed = taken | {name for op in views for name in (*op.inputs, *op.outputs)}
    seen = taken | {name for op in views for name in op.outputs}
    made = []
    for op in ops:
        join = _join(graph, op, viewed, uses, makers, alignment) if op.outputs[0] not in seen else None
        if join is not None:
            viewed.update((*join.inputs, *join.outputs))
        made.append(join or op)
    return replace(graph, ops=tuple(made))


def _part(graph: Graph, op: Op, taken: set[str], alignment: int) -> Op | None:
    part = op.attributes
    if not isinstance(part, Slice) or op.outer or op.outputs[0] in taken:
        return None
    shape = graph.tensors[op.inputs[0]].shape
    axis = next((i for i, (n, m) in enumerate(zip(shape, part.counts, strict=True)) if n != m), 0)
    if prod(shape[:axis]) > 1 or part.counts[axis + 1 :] != shape[axis + 1 :] or set(part.steps) != {1}:
        return None
    begin = part.begins[axis] * prod(shape[axis + 1 :])
    if _bytes(graph, op.inputs[0], begin) % alignment:
        return None
    return replace(op, attributes=Part(part.counts, begin))


def _join(
    graph: Graph, op: Op, taken: set[str], uses: Counter[str], makers: dict[str, Op], alignment: int
) -> Op | None:
    join, (out,) = op.attributes, op.outputs[:1]
    if not isinstance(join, Concatenate) or op.outer or join.clamp != NO_CLAMP:
        return None
    shape = graph.tensors[out].shape
    kinds = {(graph.tensors[name].dtype, graph.tensors[name].quant) for name in (*op.inputs, out)}
    begins = np.cumsum([0, *(prod(graph.tensors[name].shape) for name in op.inputs[:-1])])
    fits = prod(shape[: join.axis]) == 1 and len(kinds) == 1
    fits = fits and not any(_bytes(graph, out, int(begin)) % alignment for begin in begins)
    free = all(uses[n] == 1 and n not in taken and n in makers and len(makers[n].outputs) == 1 for n in op.inputs)
    plain = free and not any(isinstance(makers[name].attributes, Known) for name in op.inputs)
    return replace(op, attributes=Join(shape)) if fits and plain else None


def _bytes(graph: Graph, name: str, elements: int) -> int:
    return elements * np.dtype(graph.tensors[name].dtype).itemsize
