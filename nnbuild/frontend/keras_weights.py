"""Which weights a layer has, and where each of the two file formats keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Array, Shape

DAMAGED = "Save the whole model again with model.save()."


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array that is still in the file; its shape is known and `read` fetches it.

    `read` wants floating-point numbers; where the file holds integers of 8 bits, `read_whole` fetches those.
    """

    shape: Shape
    read: Callable[[], Array]
    read_whole: Callable[[], Array] | None = None


@dataclass(frozen=True)
class Child:
    """A layer inside another: its name, and the folder in which a .keras file keeps its weights."""

    name: str
    tree: WeightTree
    folder: str


@dataclass(frozen=True)
class WeightTree:
    """The weights of a layer by role, and those of the layers inside it.

    `trained` come first in both formats, then `fixed` (moving averages), each in the order Keras creates them.
    """

    trained: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    trainable: bool = True
    is_model: bool = False
    ranges: bool = False
    """Whether the file holds ranges behind the weights, by their names."""


def parts(**trees: WeightTree) -> tuple[Child, ...]:
    """The fixed parts of a wrapper, which the file knows by the same names."""
    return tuple(Child(name, tree, name) for name, tree in trees.items())


class Stored:
    """The arrays of a model by role; those of inner layers behind the inner layer's name and a slash."""

    def __init__(self, arrays: Mapping[str, StoredArray], prefix: str = "") -> None:
        self._arrays = arrays
        self._prefix = prefix

    def get(self, role: str) -> StoredArray | None:
        return self._arrays.get(self._prefix + role)

    def replaced(self, arrays: Mapping[str, StoredArray]) -> Stored:
        """The same with other arrays in some roles."""
        return Stored({**self._arrays, **{self._prefix + role: array for role, array in arrays.items()}}, self._prefix)

    def parameters(self) -> int:
        """As Keras counts them: every number of its weights, moving averages with them."""
        return sum(prod(array.shape) for name, array in self._arrays.items() if name.startswith(self._prefix))

    def inside(self, child: str) -> Stored:
        return Stored(self._arrays, f"{self._prefix}{child}/")


def listed_roles(tree: WeightTree, keras3: bool) -> list[str]:
    """The roles in the order in which an .h5 file lists a layer's weights: trainable ones, then the others."""
    if keras3:
        leaves = list(_leaves(tree, "", True))
        return [role for role, free in leaves if free] + [role for role, free in leaves if not free]
    trained, fixed = _keras2_order(tree, "")
    return trained + fixed


def _leaves(tree: WeightTree, prefix: str, free: bool) -> Iterator[tuple[str, bool]]:
    """Keras 3: depth first; freezing a layer freezes everything in it."""
    free = free and tree.trainable
    yield from ((prefix + role, free) for role in tree.trained)
    yield from ((prefix + role, False) for role in tree.fixed)
    for child in tree.children:
        yield from _leaves(child.tree, f"{prefix}{child.name}/", free)


def _keras2_order(tree: WeightTree, prefix: str) -> tuple[list[str], list[str]]:
    """Keras 2: each layer answers for itself and its own; a frozen one counts everything as not trainable."""
    trained = [prefix + role for role in tree.trained]
    fixed = [prefix + role for role in tree.fixed]
    children = [_keras2_order(child.tree, f"{prefix}{child.name}/") for child in tree.children]
    inner_trained = [role for child in children for role in child[0]]
    inner_fixed = [role for child in children for role in child[1]]
    if tree.trainable:
        return trained + inner_trained, fixed + inner_fixed
    if tree.is_model:
        return [], inner_trained + trained + inner_fixed + fixed
    return [], trained + fixed + [role for child in children for role in child[0] + child[1]]


def by_order(where: str, roles: Sequence[str], arrays: Sequence[StoredArray]) -> dict[str, StoredArray]:
    if len(roles) != len(arrays):
        raise ModelError(
            where, f"the file holds {len(arrays)} weight arrays for it, but the layer has {len(roles)}.", DAMAGED
        )
    return dict(zip(roles, arrays, strict=True))


def finite(where: str, role: str, values: Array) -> Array:
    """Refuses weights with which nothing can be computed."""
    # The sum is finite only if every value is (short of an overflow), and needs no temporary array.
    with np.errstate(all="ignore"):
        suspicious = values.size > 0 and not np.isfinite(values.sum(dtype=np.float64))
    if suspicious and not np.isfinite(values).all():
        raise ModelError(
            where,
            f"its {role} holds values that are not numbers (NaN or infinity).",
            "The training has diverged; train again, or save an earlier state of the model.",
        )
    return values
