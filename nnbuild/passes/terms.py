"""Sums and products of tensors written out element by element, whatever layouts their parts are moved into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nnbuild.model.graph import Array, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary, operands
from nnbuild.passes.readers import Readers, computes
from nnbuild.passes.rows import is_move, moved, numbers

MOST_TERMS = 4
DEEPEST = 16
"""Operations one after the other that are looked into."""


@dataclass(frozen=True, eq=False)
class Term:
    """A product, element by element: of a constant, and of the elements at these places of tensors."""

    constant: Array
    places: Mapping[str, Array] = field(default_factory=dict)

    def moved(self, op: Op) -> Term:
        return Term(moved((op,), self.constant), {name: moved((op,), at) for name, at in self.places.items()})

    def broadcast(self, shape: Shape) -> Term:
        places = {name: np.broadcast_to(at, shape) for name, at in self.places.items()}
        return Term(np.broadcast_to(self.constant, shape), places)

    def times(self, other: Term) -> Term | None:
        """None for a square."""
        if self.places.keys() & other.places.keys():
            return None
        return Term(self.constant * other.constant, {**self.places, **other.places})


def terms_of(readers: Readers, op: Op, x: str, depth: int = 0) -> list[Term] | None:
    """The terms of an operation's result; None if there are too many, or squares. They have x as it is, and else what
    is no sum or product of others that is made for this alone."""
    if isinstance(op.attributes, Binary) and len(op.inputs) + len(op.constants) == 2:
        held = {role: [Term(readers.graph.constants[name].data)] for role, name in op.constants.items()}
        left, right = operands([_terms(readers, name, x, depth) for name in op.inputs], held)
        return _combined(op.attributes.function, left, right, readers.shape(op.outputs[0]))
    terms = _terms(readers, op.inputs[0], x, depth)
    return [term.moved(op) if is_move(op) else replace(term, constant=-term.constant) for term in terms]


def _terms(readers: Readers, name: str, x: str, depth: int) -> list[Term]:
    op, shape = readers.makers.get(name), readers.shape(name)
    inside = name != x and depth < DEEPEST and op is not None and _is_open(readers, op)
    found = terms_of(readers, op, x, depth + 1) if inside and op is not None else None
    return found or [Term(np.ones(shape), {name: numbers(shape)})]


def _is_open(readers: Readers, op: Op) -> bool:
    if is_move(op) or (op.attributes == Activation("negative") and not op.outer):
        return True
    plain = any(computes(op, function, len(op.inputs)) for function in ("add", "subtract", "multiply"))
    return plain and (len(op.inputs) == 1 or readers.inner(op.outputs[0]) is not None)


def _combined(function: str, left: list[Term], right: list[Term], shape: Shape) -> list[Term] | None:
    left, right = ([term.broadcast(shape) for term in terms] for terms in (left, right))
    if function == "multiply":
        products = [one.times(other) for one in left for other in right]
        terms = [term for term in products if term is not None]
        return terms if len(terms) == len(products) <= MOST_TERMS else None
    if function == "subtract":
        right = [replace(term, constant=-term.constant) for term in right]
    return [*left, *right] if len(left) + len(right) <= MOST_TERMS else None


def narrowed(values: Array) -> Array:
    """With one element in the place of an axis along which nothing changes."""
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if np.array_equal(np.broadcast_to(first, values.shape), values):
            values = first
    return values


def split(*places: Array) -> Shape:
    """Their shape, with each axis split into groups whose members have the same place, where it has such."""
    shape = list[int]()
    for axis, size in enumerate(places[0].shape):
        rows = [np.moveaxis(at, axis, -1).reshape(-1, size) for at in places]
        groups = (n for n in range(size, 0, -1) if size % n == 0 and all(_in_groups(row, n) for row in rows))
        group = next(groups)
        shape += [size] if group in (1, size) else [size // group, group]
    return tuple(shape)


def _in_groups(rows: Array, size: int) -> bool:
    grouped = rows.reshape(len(rows), -1, size)
    return bool((grouped == grouped[..., :1]).all())


def of_last_axes(*constants: Array) -> Iterator[Array]:
    """The constants as vectors, one for each element of the fewest last axes along which they change."""
    narrow = [narrowed(values) for values in constants]
    lead = min(next((axis for axis, n in enumerate(one.shape) if n > 1), one.ndim - 1) for one in narrow)
    return (values[(0,) * lead].reshape(-1) for values in constants)
