"""Finds ring buffers: where a model appends new rows to the rows it keeps and keeps the last of them, the state becomes
the joined rows, shifted in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op, State
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.shift import Shift
from nnbuild.ops.slice import Slice


def find_ring_buffers(graph: Graph) -> Graph:
    for state in graph.states:
        graph = _keep_joined(graph, state) or _keep_last_rows(graph, state) or graph
    return graph


def _append_op(graph: Graph, old: str) -> Op | None:
    """The concatenation that alone reads the rows `old` and appends new ones of the same format."""
    readers = [op for op in graph.ops if old in op.inputs]
    if len(readers) != 1 or old in graph.outputs:
        return None
    (op,) = readers
    join = op.attributes
    alike = len({(graph.tensors[n].dtype, graph.tensors[n].quant) for n in (*op.inputs, *op.outputs)}) == 1
    fits = isinstance(join, Concatenate) and join.clamp == NO_CLAMP and len(op.inputs) == 2 and not op.outer
    return op if fits and alike and op.inputs[0] == old and op.inputs[1] != old else None


def _takes_last_rows(op: Op, axis: int, rows: int, size: int) -> bool:
    """Whether an operation takes the last rows of an axis, and everything of the other axes."""
    part = op.attributes
    if not isinstance(part, Slice) or op.outer:
        return False
    begins = tuple(size - rows if i == axis else 0 for i in range(len(part.begins)))
    return part.begins == begins and set(part.steps) == {1} and part.counts[axis] == rows


def _maker(graph: Graph, name: str) -> Op | None:
    return next((op for op in graph.ops if name in op.outputs), None)


def _keep_last_rows(graph: Graph, state: State) -> Graph | None:
    """Handles concat(before, new) of which the last rows are kept."""
    join, cut = _append_op(graph, state.before), _maker(graph, state.after)
    if join is None or cut is None or cut.inputs != join.outputs:
        return None
    (made,) = join.outputs
    assert isinstance(join.attributes, Concatenate)
    axis, shape, before = join.attributes.axis, graph.tensors[made].shape, graph.tensors[state.before]
    kept = before.shape[axis]
    new = shape[axis] - kept
    alone = sum(each.after == state.after for each in graph.states) == 1
    if (
        not alone
        or not _takes_last_rows(cut, axis, kept, shape[axis])
        or graph.tensors[state.after].shape != before.shape
    ):
        return None
    initial, constants = state.initial, dict(graph.constants)
    if initial is not None:
        data = constants[initial].data
        first = np.repeat(data.take([0], axis), new, axis)
        constants[initial] = Constant(initial, np.concatenate([first, data], axis), constants[initial].quant)
    tensors = {**graph.tensors, state.before: replace(before, shape=shape)}
    needed = state.after in graph.outputs or any(state.after in op.inputs for op in graph.ops)
    ops = tuple(
        replace(op, attributes=Shift(axis)) if op is join else op for op in graph.ops if op is not cut or needed
    )
    if not needed:
        del tensors[state.after]
    states = tuple(replace(s, after=made) if s is state else s for s in graph.states)
    return replace(graph, tensors=tensors, constants=constants, ops=ops, states=states)


def _keep_joined(graph: Graph, state: State) -> Graph | None:
    """Handles concat(last rows of before, new), all of which is kept."""
    readers = [op for op in graph.ops if state.before in op.inputs]
    if len(readers) != 1 or state.before in graph.outputs:
        return None
    (cut,) = readers
    join = _append_op(graph, cut.outputs[0]) if len(cut.outputs) == 1 else None
    if join is None or join.outputs != (state.after,):
        return None
    assert isinstance(join.attributes, Concatenate)
    axis, rows = join.attributes.axis, graph.tensors[state.before].shape
    if not _takes_last_rows(cut, axis, graph.tensors[cut.outputs[0]].shape[axis], rows[axis]):
        return None
    moved = replace(join, attributes=Shift(axis), inputs=(state.before, join.inputs[1]))
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != cut.outputs[0]}
    return replace(graph, tensors=tensors, ops=tuple(moved if op is join else op for op in graph.ops if op is not cut))
