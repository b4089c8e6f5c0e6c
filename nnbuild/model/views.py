"""The layout of a file's tensor in a stored tensor.

A file names axes in one order, and the graph stores them in another. A view relates both: a stored tensor is a sequence
of atoms, and every axis of the file consists of some of them. Transposing and reshaping only relabel, so both are free
until an operation needs an order that is not there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nnbuild.model.graph import Shape


@dataclass(frozen=True)
class View:
    """`atoms` are sizes above 1 in storage order; `axes` lists each axis' atoms, the slowest first."""

    atoms: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> Shape:
        return tuple(prod(self.atoms[a] for a in axis) for axis in self.axes)

    @property
    def size(self) -> int:
        return prod(self.atoms)

    @property
    def is_plain(self) -> bool:
        """Whether it is stored in the order of its axes."""
        return [a for axis in self.axes for a in axis] == list(range(len(self.atoms)))

    def order(self) -> tuple[int, ...] | None:
        """The axes above 1 in storage order; None where an axis is not contiguous."""
        flat = [a for axis in sorted((x for x in self.axes if x), key=lambda x: x[0]) for a in axis]
        if flat != list(range(len(self.atoms))):
            return None
        whole = [i for i, axis in enumerate(self.axes) if axis]
        return tuple(sorted(whole, key=lambda i: self.axes[i][0]))


def stored(shape: Shape, order: Sequence[int] | None = None) -> View:
    """A tensor of that shape, whose axes are stored in that order."""
    places = [i for i in (order if order is not None else range(len(shape))) if shape[i] > 1]
    axes = tuple((places.index(i),) if i in places else () for i in range(len(shape)))
    return View(tuple(shape[i] for i in places), axes)


def transposed(view: View, order: Sequence[int]) -> View:
    return View(view.atoms, tuple(view.axes[i] for i in order))


def with_axes(pieces: Sequence[tuple[int, int, int]], axes: Sequence[Sequence[tuple[int, int]]]) -> View:
    """Builds a view from pieces (atom, part, size) and, for each axis, its (atom, part)s."""
    inner = sorted(pieces)
    place = {(atom, part): i for i, (atom, part, _) in enumerate(inner)}
    return View(tuple(size for _, _, size in inner), tuple(tuple(place[key] for key in axis) for axis in axes))


def joined(view: View) -> View:
    """Merges atoms that always appear together."""
    following = {a: b for axis in view.axes for a, b in itertools.pairwise(axis) if b == a + 1}
    starts = [a for a in range(len(view.atoms)) if a - 1 not in following]
    sizes, home = [], {}
    for place, start in enumerate(starts):
        size, atom = view.atoms[start], start
        home[start] = place
        while atom in following:
            atom = following[atom]
            size *= view.atoms[atom]
        sizes.append(size)
    return View(tuple(sizes), tuple(tuple(home[a] for a in axis if a in home) for axis in view.axes))


def reshaped(view: View, shape: Shape) -> View | None:
    """The same elements with another shape; None where an atom would have to be split unevenly."""
    row = [a for axis in view.axes for a in axis]
    whole = joined(View(view.atoms, (tuple(row),)))
    left = [(atom, whole.atoms[atom]) for atom in reversed(whole.axes[0])]
    parts: dict[int, int] = {}
    pieces: list[tuple[int, int, int]] = []
    axes: list[list[tuple[int, int]]] = []
    for wanted in shape:
        axis = []
        while wanted > 1:
            if not left:
                return None
            atom, size = left.pop()
            if size > wanted:
                if size % wanted:
                    return None
                left.append((atom, size // wanted))
                size = wanted
            elif wanted % size:
                return None
            part = parts[atom] = parts.get(atom, -1) + 1
            pieces.append((atom, part, size))
            axis.append((atom, part))
            wanted //= size
        axes.append(axis)
    return None if left else with_axes(pieces, axes)


def refined(view: View, wanted: Sequence[Sequence[int]]) -> View | None:
    """The view with every axis also split at these sizes; None where they are incompatible with its own."""
    pieces: list[tuple[int, int, int]] = []
    axes: list[list[tuple[int, int]]] = []
    for own, sizes in zip(view.axes, wanted, strict=True):
        marks = sorted({*_ends([view.atoms[a] for a in own]), *(_ends(sizes) if own else ())})
        if any(b % a for a, b in itertools.pairwise(marks)):
            return None
        axis: list[tuple[int, int]] = []
        done = 1
        for atom in own:
            end, low = done * view.atoms[atom], done
            for part, mark in enumerate(m for m in marks if done < m <= end):
                pieces.append((atom, part, mark // low))
                axis.append((atom, part))
                low = mark
            done = end
        axes.append(axis)
    return with_axes(pieces, axes)


def cuts(view: View) -> list[list[int]]:
    """The sizes of each axis' atoms."""
    return [[view.atoms[a] for a in axis] for axis in view.axes]


def _ends(sizes: Sequence[int]) -> list[int]:
    """The cumulative size of an axis after each of its pieces, from the slowest on."""
    found, done = [], 1
    for size in sizes:
        done *= size
        found.append(done)
    return found


def runs(order: Sequence[int]) -> list[list[int]]:
    """Groups consecutive numbers."""
    found: list[list[int]] = []
    for each in order:
        if found and found[-1][-1] + 1 == each:
            found[-1].append(each)
        else:
            found.append([each])
    return found


@dataclass(frozen=True)
class Together:
    """Several tensors in one layout. `views` are theirs, split alike; `orders` give the storage order of each one's
    atoms, `shapes` its shape in that order, with 1 where it is repeated; `result` is the view of the result."""

    result: View
    views: tuple[View, ...]
    orders: tuple[tuple[int, ...], ...]
    shapes: tuple[Shape, ...]


Key = tuple[int, int]
"""An axis, and the index of its piece."""


def together(views: Sequence[View], shapes: Sequence[Shape | None]) -> Together | None:
    """A layout for operands that are broadcast to each other: that of the operand which covers most.

    `shapes` are the stored shapes of run-time operands; None marks a constant, which adapts to any layout.
    """
    rank = max(len(view.axes) for view in views)
    full = [View(view.atoms, ((),) * (rank - len(view.axes)) + view.axes) for view in views]
    for _ in views:
        marks = [cuts(view) for view in full]
        for i in range(rank):
            sizes = {prod(m[i]) for m in marks if m[i]}
            if len(sizes) > 1:
                raise ValueError(f"its operands {[list(v.shape) for v in views]} do not match.")
        for i, view in enumerate(full):
            for other in marks:
                finer = refined(view, other)
                if finer is None:
                    return None
                view = finer
            full[i] = view
    keys = [_keys(view) for view in full]
    every = sorted({key for own in keys for key in own})
    covering = [i for i, own in enumerate(keys) if len(own) == len(every) and shapes[i] is not None]
    base = next((i for i in covering if not full[i].is_plain), covering[0] if covering else None)
    order = keys[base] if base is not None else every
    sizes_of = {key: view.atoms[a] for own, view in zip(keys, full, strict=True) for a, key in enumerate(own)}
    result = View(
        tuple(sizes_of[key] for key in order),
        tuple(tuple(order.index(key) for key in every if key[0] == axis) for axis in range(rank)),
    )
    bounds = _bounds(order, keys, sizes_of, shapes[base] if base is not None else None)
    return Together(
        result,
        tuple(full),
        tuple(tuple(own.index(key) for key in order if key in own) for own in keys),
        tuple(_seen_as(order, own, sizes_of, bounds) for own in keys),
    )


def _keys(view: View) -> list[Key]:
    """The key of each atom, in storage order."""
    found = {a: (axis, part) for axis, own in enumerate(view.axes) for part, a in enumerate(own)}
    return [found[a] for a in range(len(view.atoms))]


def _bounds(order: Sequence[Key], keys: Sequence[list[Key]], sizes: dict[Key, int], shape: Shape | None) -> list[int]:
    """The cumulative sizes at the ends of the stored result's axes: those of `shape` if possible."""
    if not order:
        return []
    needed, done = set(), 1
    for key, following in zip(order, [*order[1:], None], strict=True):
        done *= sizes[key]
        if following is None or any((key in own) != (following in own) for own in keys):
            needed.add(done)
    own = set(_ends(shape)) if shape is not None else set()
    return sorted(b for b in (own if needed <= own else needed) if b > 1)


def _seen_as(order: Sequence[Key], own: Sequence[Key], sizes: dict[Key, int], bounds: Sequence[int]) -> Shape:
    """One operand's shape: each stretch between bounds is present as a whole, or 1."""
    shape, low = [], 1
    for bound in bounds:
        done = 1
        for key in order:
            if done * sizes[key] > low:
                break
            done *= sizes[key]
        shape.append(bound // low if key in own else 1)
        low = bound
    return tuple(shape)
