"""What every operation's attributes can answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape

if TYPE_CHECKING:
    from nnbuild.ops.site import Site

Pair = tuple[int, int]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Attributes(ABC):
    """The options of one operation, and its meaning.

    Shapes and arrays come without the axes of `Op.outer`. Arrays lead with a batch axis, shapes have none.
    A broken combination raises ValueError with the cause; the verifier adds the layer.
    """

    kind: ClassVar[str]
    sequential: ClassVar[bool] = False
    """Whether each piece of the work needs what the piece before it left behind."""
    required: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        """The shapes of the outputs."""

    @abstractmethod
    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        """The outputs in floating point, in the precision of the inputs."""

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs in the integers of a quantized graph; the site tells every scale and zero point."""
        raise NotImplementedError(f"{self.kind} has no integer form")

    def rounds(self) -> bool:
        """Whether floats are rounded on the way; not so where they are only moved or chosen."""
        return True

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """What each output's rounding error is a share of: the sum of what it was added up from, without signs.

        One rounding, the usual case, errs by a share of the result.
        """
        return tuple(np.abs(y) for y in outputs)

    def macs(self, inputs: Sequence[Shape], outputs: Sequence[Shape], constants: Mapping[str, Shape]) -> int:
        """Multiply-accumulates of one call; 0 where an operation has none to speak of."""
        return 0


@dataclass(frozen=True)
class Clamp:
    """The bounds a fused activation puts on a result; None is unbounded."""

    low: float | None = None
    high: float | None = None

    def merged(self, later: Clamp) -> Clamp:
        """The one clamp that equals this one followed by `later`."""

        def limit(value: float | None) -> float | None:
            if value is None:
                return None
            if later.low is not None:
                value = max(value, later.low)
            return value if later.high is None else min(value, later.high)

        low = limit(self.low) if self.low is not None else later.low
        high = limit(self.high) if self.high is not None else later.high
        return Clamp(low, high)

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
    """A shape seen as (everything before, the axes meant, everything after)."""
    return prod(shape[:axis]), prod(shape[axis : axis + count]), prod(shape[axis + count :])
