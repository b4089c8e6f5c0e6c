"""Brings run-time values into the order that an operation needs; free if they are already stored that way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from nnbuild.model.graph import Array, Shape, Tensor
from nnbuild.model.views import Together, View, joined, runs, stored, together
from nnbuild.ops.base import Attributes
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose

NUMBERS = ("float32", "float64", "float16", "bfloat16")
"""Types computed in float32."""


@dataclass(frozen=True)
class Value:
    """A run-time value: the tensor `name`, its layout, and its type in the file.

    A float32 value whose tensor contains scaled integers comes from a DequantizeLinear.
    """

    name: str
    view: View
    dtype: str

    @property
    def shape(self) -> Shape:
        return self.view.shape

    @property
    def is_number(self) -> bool:
        return self.dtype in NUMBERS


class Maker(Protocol):
    """Adds operations to the graph."""

    def tensor(self, name: str) -> Tensor: ...

    def moved(self, attributes: Attributes, name: str) -> str: ...


def seen(maker: Maker, name: str, shape: Shape) -> str:
    """The same elements in the same order with another shape."""
    shape = shape or (1,)
    return name if maker.tensor(name).shape == shape else maker.moved(Reshape(shape), name)


def ordered(maker: Maker, value: Value, order: Sequence[int]) -> Value:
    """Stores the atoms in this order."""
    if list(order) == list(range(len(order))):
        return value
    atoms = value.view.atoms
    pieces = runs(order)
    starts = sorted(piece[0] for piece in pieces)
    size = {piece[0]: prod(atoms[a] for a in piece) for piece in pieces}
    name = seen(maker, value.name, tuple(size[s] for s in starts))
    name = maker.moved(Transpose(tuple(starts.index(piece[0]) for piece in pieces)), name)
    place = {atom: i for i, atom in enumerate(order)}
    axes = tuple(tuple(place[a] for a in axis) for axis in value.view.axes)
    return replace(value, name=name, view=View(tuple(atoms[a] for a in order), axes))


def plain(maker: Maker, value: Value) -> Value:
    """Stores the value in the order of its axes, one atom per axis."""
    made = ordered(maker, value, [a for axis in value.view.axes for a in axis])
    return replace(made, view=stored(made.shape))


def arranged(
    maker: Maker, value: Value, lead: Sequence[int] = (), tail: Sequence[int] = (), *, free: bool = False
) -> Value:
    """Stores these axes first and last, and the others between them in their order; `free` allows any order of the
    last ones."""
    axes = value.view.axes
    first, last = ([a for i in which for a in axes[i]] for which in (lead, tail))
    rest = [a for a in range(len(value.view.atoms)) if a not in first and a not in last]
    return ordered(maker, value, [*first, *rest, *(sorted(last) if free else last)])


def with_last(maker: Maker, value: Value, axis: int) -> Value:
    """Stores an axis last and in one piece."""
    made = arranged(maker, value, [], [axis])
    view = joined(made.view)
    return replace(made, name=seen(maker, made.name, view.atoms), view=view)


def whole(maker: Maker, value: Value, order: Sequence[int] | None = None) -> tuple[Value, tuple[int, ...]]:
    """Stores each axis in one piece; returns the value and the order of all its axes, its own unless `order` is given.

    The tensor's shape then includes every axis, also those of size 1, which go where they are named, before the next
    axis.
    """
    if order is None:
        found = value.view.order()
        order = full_order(value.shape, found) if found is not None else tuple(range(len(value.shape)))
    made = ordered(maker, value, [a for i in order for a in value.view.axes[i]])
    made = replace(made, view=stored(made.shape, order))
    return replace(made, name=seen(maker, made.name, tuple(made.shape[i] for i in order))), tuple(order)


def full_order(shape: Shape, found: Sequence[int]) -> tuple[int, ...]:
    """The order including axes of size 1: channels last where rows and columns are stored before them, otherwise in
    front."""
    missing = [i for i, n in enumerate(shape) if n == 1]
    if list(found) == sorted(found):
        return tuple(range(len(shape)))
    last = [1] if 1 in missing and len(shape) > 2 else []
    return (*(i for i in missing if i not in last), *found, *last)


def common_order(values: Sequence[Value]) -> tuple[int, ...]:
    """The storage order of most operands of one rank; the others are reordered to it."""
    rank = len(values[0].shape)
    found = [order for order in (value.view.order() for value in values) if order is not None]
    turned = [order for order in found if list(order) != sorted(order)]
    best = max(turned or found or [tuple(range(rank))], key=len)
    rest = [i for i in range(rank) if i not in best]
    if list(best) == sorted(best):
        return tuple(range(rank))
    last = [i for i in rest if i == 1 and rank > 2]
    return (*(i for i in rest if i not in last), *best, *last)


def index_of(view: View, axis: int) -> Array:
    """The index of each stored element along an axis whose atoms are contiguous."""
    own = view.axes[axis]
    sizes = [view.atoms[a] for a in own]
    numbers = np.arange(prod(sizes)).reshape(sizes)
    return numbers.transpose(np.argsort(own, kind="stable")).reshape(-1)


def laid(data: Array, view: View, order: Sequence[int], shape: Shape) -> Array:
    """A constant in the layout of `together`."""
    row = [a for axis in view.axes for a in axis]
    atoms = data.reshape([view.atoms[a] for a in row])
    return np.ascontiguousarray(atoms.transpose([row.index(a) for a in order]).reshape(shape or (1,)))


def channels_together(maker: Maker, items: Sequence[Value | Array]) -> list[Value | Array]:
    """Operands, with an axis in one piece and last where a constant varies along it alone and other axes are stored
    between its pieces, as behind a normalization of groups of channels."""
    constants = [item for item in items if not isinstance(item, Value)]
    made = list(items)
    for place, x in enumerate(items):
        for other in constants if isinstance(x, Value) else []:
            assert isinstance(x, Value)
            varying = [axis - other.ndim + len(x.shape) for axis, size in enumerate(other.shape) if size > 1]
            pieces = sorted(x.view.axes[varying[0]]) if len(varying) == 1 and varying[0] >= 0 else []
            if pieces and pieces[-1] - pieces[0] >= len(pieces):
                made[place] = with_last(maker, x, varying[0])
    return made


def broadcast(maker: Maker, items: Sequence[Value | Array]) -> tuple[View, list[str | Array]]:
    """Operands in one layout: the view of the result, and each operand as a tensor's name or a constant."""
    plan = _together(maker, items)
    if plan is None:
        items = [plain(maker, item) if isinstance(item, Value) else item for item in items]
        plan = _together(maker, items)
        assert plan is not None, "what is plain can be cut anywhere"
    found: list[str | Array] = []
    for item, view, order, shape in zip(items, plan.views, plan.orders, plan.shapes, strict=True):
        if isinstance(item, Value):
            made = ordered(maker, replace(item, view=view), order)
            found.append(seen(maker, made.name, shape))
        else:
            found.append(laid(item, view, order, shape))
    return plan.result, found


def _together(maker: Maker, items: Sequence[Value | Array]) -> Together | None:
    views = [item.view if isinstance(item, Value) else stored(item.shape) for item in items]
    return together(views, [maker.tensor(i.name).shape if isinstance(i, Value) else None for i in items])


def gathered(maker: Maker, x: Value, axes: Iterable[int]) -> tuple[Value, int, Shape]:
    """Makes the atoms of these axes contiguous; returns the value, its tensor viewed as [before, axes, after], and
    the position of the middle one."""
    chosen = list(axes)
    own = sorted(a for i in chosen for a in x.view.axes[i])
    if len(runs(own)) > 1:
        x = arranged(maker, x, [], chosen, free=True)
        own = sorted(a for i in chosen for a in x.view.axes[i])
    low, high = (own[0], own[-1] + 1) if own else (len(x.view.atoms),) * 2
    before, after = prod(x.view.atoms[:low]), prod(x.view.atoms[high:])
    shape = (*((before,) if before > 1 else ()), prod(x.view.atoms[low:high]), *((after,) if after > 1 else ()))
    return x, int(before > 1), shape


def without(view: View, axes: Iterable[int], keep: bool) -> View:
    """The view after these axes are reduced."""
    chosen = set(axes)
    gone = {a for i in chosen for a in view.axes[i]}
    left = [a for a in range(len(view.atoms)) if a not in gone]
    place = {a: i for i, a in enumerate(left)}
    kept = [
        () if i in chosen else tuple(place[a] for a in axis)
        for i, axis in enumerate(view.axes)
        if keep or i not in chosen
    ]
    return View(tuple(view.atoms[a] for a in left), tuple(kept))


def without_ones(values: Array) -> Array:
    """Removes leading axes of size 1."""
    while values.ndim > 1 and values.shape[0] == 1:
        values = values[0]
    return values
