"""Follows values through operations that only move them: which vectors of a tensor a reduction summed up, and how to
lay the tensor out so that these vectors are its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Shape
from nnbuild.ops.base import Attributes
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose


def is_move(op: Op) -> bool:
    """Whether this only moves or repeats the values of one tensor."""
    return isinstance(op.attributes, Reshape | Repeat | Transpose) and len(op.inputs) == 1 and not op.outer


def is_same_order(op: Op) -> bool:
    """Whether this keeps all values in their order."""
    return type(op.attributes) is Reshape and not op.outer


def origins(makers: Mapping[str, Op], name: str) -> dict[str, tuple[Op, ...]]:
    """The tensors whose moved values this one holds, itself first, and the moves from each to it."""
    found, moves = {name: tuple[Op, ...]()}, tuple[Op, ...]()
    while name in makers and is_move(makers[name]):
        moves = (makers[name], *moves)
        name = moves[0].inputs[0]
        found[name] = moves
    return found


def moved(moves: Sequence[Op], values: Array) -> Array:
    """The values, of a tensor's shape, after these moves."""
    for op in moves:
        values = op.attributes.reference([values[None]], {})[0][0]
    return values


@dataclass(frozen=True)
class Reduced:
    """A reduction of a tensor that was moved `before`, and the moves of its result."""

    op: Op
    before: tuple[Op, ...]
    after: tuple[Op, ...]

    def rows_of(self, graph: Graph, name: str, x: tuple[Op, ...], shape: Shape) -> Array | None:
        """For each value of a tensor of this shape, to which the moves `x` lead from the tensor named: the number of
        the vector whose reduction meets it. None where that is not the vector that it is part of."""
        attributes = self.op.attributes
        assert isinstance(attributes, Reduce)
        counted = numbers(graph.tensors[name].shape)
        taken, met = moved(self.before, counted), moved(x, counted)
        axes = range(attributes.axis, attributes.axis + attributes.count)
        (short,) = attributes.shapes([taken.shape], {})
        vectors = np.moveaxis(taken, axes, range(-attributes.count, 0)).reshape(prod(short), -1)
        owner = np.full(counted.size, -1)
        owner[vectors] = np.arange(len(vectors))[:, None]
        given = moved(self.after, numbers(short))
        if np.count_nonzero(owner >= 0) != vectors.size or vectors.size != prod(shape) or met.shape != shape:
            return None
        try:
            rows = np.broadcast_to(given, shape)
        except ValueError:
            return None
        return rows if np.array_equal(owner[met], rows) else None


def numbers(shape: Shape) -> Array:
    return np.arange(prod(shape)).reshape(shape)


def same_vectors(rows: Array, others: Array) -> bool:
    """Whether both divide the values, listed in one order, into the same vectors."""
    return np.array_equal(_firsts(rows.reshape(-1)), _firsts(others.reshape(-1)))


def _firsts(rows: Array) -> Array:
    """For each value the place of the first one of its vector."""
    _, first, vector = np.unique(rows, return_index=True, return_inverse=True)
    return first[vector.reshape(-1)]


def laid_out(rows: Array, size: int) -> tuple[tuple[Attributes, ...], tuple[Attributes, ...]] | None:
    """The moves that make vectors of this size the rows of a tensor, and those back; None if none of ours do."""
    shape = rows.shape
    if shape[-1] == size and _along_last(rows):
        return (), ()
    lines = rows.reshape(-1, size)
    flat = (len(lines), size) if len(lines) > 1 else (size,)
    if _along_last(lines):
        return (Reshape(flat),), (Reshape(shape),)
    within = [a for a, n in enumerate(shape) if n > 1 and (np.diff(rows, axis=a) == 0).all()]
    order = (*(a for a in range(len(shape)) if a not in within), *within)
    if prod(shape[a] for a in within) != size:
        return None
    turned = tuple(shape[a] for a in order)
    there, back = Transpose(order), Transpose(tuple(order.index(a) for a in range(len(order))))
    return ((there,), (back,)) if turned[-1] == size else ((there, Reshape(flat)), (Reshape(turned), back))


def _along_last(rows: Array) -> bool:
    return bool((rows == rows[..., :1]).all())
