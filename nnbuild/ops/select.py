"""Selects between two operands elementwise by a truth value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site

T = TypeVar("T")
LEFT_OUT = -1e8
"""A score this low marks an element to ignore: softmax gives it nothing."""


@dataclass(frozen=True)
class Select(Attributes):
    """(condition, chosen, other): `chosen` where the condition is not 0. Either may be a constant of that name."""

    kind: ClassVar[str] = "select"
    optional: ClassVar[tuple[str, ...]] = ("chosen", "other")

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(bool(inputs) and len(inputs) + len(constants) == 3, "it needs a condition and two operands.")
        try:
            return (tuple(np.broadcast_shapes(*sides(inputs, constants))),)
        except ValueError:
            raise ValueError(f"its operands {sides(inputs, constants)} do not match.") from None

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        given = sides(inputs, {role: value[None] for role, value in constants.items()})
        rank = max(value.ndim for value in given)
        condition, chosen, other = (v.reshape(v.shape[0], *(1,) * (rank - v.ndim), *v.shape[1:]) for v in given)
        return (np.where(condition != 0, chosen, other),)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Elements are copied: both operands have the output's format."""
        return self.reference(inputs, {role: constant.data for role, constant in site.constants.items()})


def sides(inputs: Sequence[T], constants: Mapping[str, T]) -> tuple[T, T, T]:
    """(condition, chosen, other), inputs or constants."""
    rest = list(inputs[1:])
    chosen = constants["chosen"] if "chosen" in constants else rest.pop(0)
    return inputs[0], chosen, constants["other"] if "other" in constants else rest[0]
