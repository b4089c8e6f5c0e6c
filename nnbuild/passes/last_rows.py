"""A recurrent layer of whose sequence only the last row is read computes no sequence: that row is its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.passes.readers import Readers
from nnbuild.passes.remove_dead import remove_dead
from nnbuild.passes.rows import moved, numbers


def last_rows(graph: Graph) -> Graph:
    readers, changed = Readers(graph), dict[str, Op]()
    for op in graph.ops:
        layer = op.attributes
        if not isinstance(layer, Recurrent) or not layer.sequences or layer.zero_rows or op.outer:
            continue
        taken = _taken(readers, op.outputs[0], ())
        if not taken:
            continue
        state = op.outputs[1]
        changed[op.name] = replace(op, attributes=replace(layer, sequences=False), outputs=op.outputs[1:])
        for last in taken:
            reshape = Reshape(readers.shape(last.outputs[0]))
            changed[last.name] = replace(last, attributes=reshape, inputs=(state,))
    return remove_dead(replace(graph, ops=tuple(changed.get(op.name, op) for op in graph.ops)))


def _taken(readers: Readers, name: str, moves: Sequence[Op]) -> list[Op] | None:
    """The slices of a sequence's last row, if nothing else reads it."""
    if name in readers.pinned:
        return None
    found = list[Op]()
    for op in readers.of(name):
        if op.outer:
            return None
        if isinstance(op.attributes, Reshape):
            further = _taken(readers, op.outputs[0], (*moves, op))
            if further is None:
                return None
            found += further
        elif isinstance(op.attributes, Slice) and _is_last(readers, (*moves, op)):
            found.append(op)
        else:
            return None
    return found


def _is_last(readers: Readers, moves: Sequence[Op]) -> bool:
    steps, units = readers.shape(moves[0].inputs[0])
    at = moved(moves, numbers((steps, units)))
    return np.array_equal(at.reshape(-1), np.arange((steps - 1) * units, steps * units))
