"""The weights of each layer, and their places in both file formats."""

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
    """An array in the file, with known shape; `read` fetches it.

    `read` requires floating-point numbers; for 8-bit integers in the file, use `read_whole`.
    """

    shape: Shape
    read: Callable[[], Array]
    read_whole: Callable[[], Array] | None = None


@dataclass(frozen=True)
class Child:
    """A layer inside another: its name, and the folder of its weights in a .keras file."""

    name: str
    tree: WeightTree
    folder: str


@dataclass(frozen=True)
class WeightTree:
    """The weights of a layer by role, and those of the layers inside it.

    `trained` come first in both formats, then `fixed` (moving averages), each in the order in which Keras creates them.
    """

    trained: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    trainable: bool = True
    is_model: bool = False
    ranges: bool = False
    """Whether ranges follow the weights in a .h5 file, by name."""
    archived: WeightTree | None = None
    """The arrangement in a .keras file, where it is another one."""
    text: str = ""
    """What a .keras file holds as a text for the layer, by its file's name."""
    around_scalar: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """What comes before and behind the first scalar in the layer's folder, of which the last may be missing."""


def parts(**trees: WeightTree) -> tuple[Child, ...]:
    """The fixed parts of a wrapper, which have the same names in the file."""
    return tuple(Child(name, tree, name) for name, tree in trees.items())


class Stored:
    """The arrays and texts of a model by role; those of inner layers have the inner layer's name and a slash as
    prefix."""

    def __init__(self, arrays: Mapping[str, StoredArray], prefix: str = "", texts: Mapping[str, str] = {}) -> None:
        self._arrays = arrays
        self._prefix = prefix
        self._texts = texts

    def text(self, name: str) -> str | None:
        return self._texts.get(self._prefix + name)

    def get(self, role: str) -> StoredArray | None:
        return self._arrays.get(self._prefix + role)

    def replaced(self, arrays: Mapping[str, StoredArray]) -> Stored:
        """A copy with other arrays for some roles."""
        replaced = {self._prefix + role: array for role, array in arrays.items()}
        return Stored({**self._arrays, **replaced}, self._prefix, self._texts)

    def parameters(self) -> int:
        """Counts as Keras does: all weights, including moving averages."""
        return sum(prod(array.shape) for name, array in self._arrays.items() if name.startswith(self._prefix))

    def inside(self, child: str) -> Stored:
        return Stored(self._arrays, f"{self._prefix}{child}/", self._texts)


def listed_roles(tree: WeightTree, keras3: bool) -> list[str]:
    """The roles in an .h5 file's order of a layer's weights: trainable ones, then the others."""
    if keras3:
        leaves = list(_leaves(tree, "", True))
        return [role for role, free in leaves if free] + [role for role, free in leaves if not free]
    trained, fixed = _keras2_order(tree, "")
    return trained + fixed


def _leaves(tree: WeightTree, prefix: str, free: bool) -> Iterator[tuple[str, bool]]:
    """Keras 3's order: depth first; freezing a layer freezes everything in it."""
    free = free and tree.trainable
    yield from ((prefix + role, free) for role in tree.trained)
    yield from ((prefix + role, False) for role in tree.fixed)
    for child in tree.children:
        yield from _leaves(child.tree, f"{prefix}{child.name}/", free)


def _keras2_order(tree: WeightTree, prefix: str) -> tuple[list[str], list[str]]:
    """Keras 2's order: each layer lists its own and inner weights; a frozen one lists all as non-trainable."""
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
    """Refuses weights that are not finite."""
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
