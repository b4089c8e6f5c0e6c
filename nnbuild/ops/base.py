"""The interface of operations' attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from nnbuild.model.graph import Array, Shape

if TYPE_CHECKING:
    from nnbuild.ops.site import Site

T = TypeVar("T")
Pair = tuple[int, int]
Arrays = Mapping[str, Array]
STEADY = 128
"""So many roundings of numbers of one size are off by 3.3 units in the last place (root mean square), and practically
never by 16."""


@dataclass(frozen=True)
class Attributes(ABC):
    """The options of one operation, and its meaning.

    Shapes and arrays come without the axes of `Op.outer`. Arrays have a leading batch axis, shapes have none. An
    invalid combination raises ValueError with the cause; the verifier adds the layer.
    """

    kind: ClassVar[str]
    sequential: ClassVar[bool] = False
    """Whether each work item needs results of the one before it."""
    unread: ClassVar[bool] = False
    """Whether its inputs are not read, and only give it a place in the order."""
    required: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        """The shapes of the outputs."""

    @abstractmethod
    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        """The outputs in floating point, in the precision of the inputs."""

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs in the integers of a quantized graph; the site has all scales and zero points."""
        raise NotImplementedError(f"{self.kind} has no integer form")

    def in_format(self, inputs: Sequence[T]) -> Sequence[T]:
        """The inputs in the operation's number format; a mask is none of them."""
        return inputs

    def rounds(self) -> bool:
        """Whether floats are rounded; not so where they are only moved or selected."""
        return True

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """The magnitude to which each output's rounding error is relative: the sum of its summands' absolute values.

        By default the output itself, for operations that round once.
        """
        return tuple(np.abs(y) for y in outputs)

    def drifting(self, size: Array, inputs: Sequence[Array], constants: Arrays, output: Array) -> Array:
        """The magnitude of a sum of products, more for many of one sign and for many small ones beside a bias.

        Their partial sums are as large as the result, so that their rounding errors grow with the root of their number;
        where products cancel, partial sums are far below the magnitude.
        """
        shapes = ([x.shape[1:] for x in inputs], [output.shape[1:]], {role: c.shape for role, c in constants.items()})
        terms = self.macs(*shapes) / max(prod(output.shape[1:]), 1)
        return np.maximum(size, np.abs(output) * np.sqrt(terms / STEADY)) if terms > STEADY else size

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        """Multiply-accumulates of one call; 0 for operations without notable ones."""
        return 0


@dataclass(frozen=True)
class Clamp:
    """The bounds of a fused activation; None is unbounded."""

    low: float | None = None
    high: float | None = None

    def merged(self, later: Clamp) -> Clamp:
        """The clamp equal to this one followed by `later`."""

        def limit(value: float | None) -> float | None:
            if value is None:
                return None
            if later.low is not None:
                value = max(value, later.low)
            return value if later.high is None else min(value, later.high)

        low = limit(self.low) if self.low is not None else later.low
        high = limit(self.high) if self.high is not None else later.high
        return Clamp(low, high)

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds as numbers."""
        return -inf if self.low is None else self.low, inf if self.high is None else self.high

    def apply(self, values: Array) -> Array:
        if self.low is not None:
            values = values.clip(min=values.dtype.type(self.low))
        if self.high is not None:
            values = values.clip(max=values.dtype.type(self.high))
        return values


NO_CLAMP = Clamp()


def signless(constants: Arrays) -> dict[str, Array]:
    return {role: np.abs(values) for role, values in constants.items()}


def expect(condition: bool, cause: str) -> None:
    if not condition:
        raise ValueError(cause)


def normal_axis(axis: int, rank: int) -> int:
    expect(-rank <= axis < rank, f"axis {axis} does not exist in a tensor of {rank} axes.")
    return axis % rank


def around(shape: Shape, axis: int, count: int = 1) -> tuple[int, int, int]:
    """A shape as (size before the axes, of the axes, behind them)."""
    return prod(shape[:axis]), prod(shape[axis : axis + count]), prod(shape[axis + count :])
