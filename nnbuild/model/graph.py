"""The network as frozen values: tensors, constants and the operations between them.

There is no behaviour here: what an operation means is said by its attributes, whose classes live in `nnbuild.ops`.
Shapes carry no batch axis; a network computes one sample at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnbuild.numeric.arithmetic import Arithmetic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from nnbuild.ops.base import Attributes

    A = TypeVar("A", bound=Attributes, default=Attributes, covariant=True)
else:
    from typing import TypeVar

    A = TypeVar("A")  # Python 3.11 knows no default.

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Quant:
    """real = scale * (integer - zero_point); one scale, or one for every index along `axis`."""

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int | None = None

    @property
    def scale(self) -> float:
        if len(self.scales) != 1:
            raise ValueError("a per-channel quantization has no single scale")
        return self.scales[0]


WHOLE = Quant((1.0,))
"""Of numbers that mean themselves: indices and counts (int32), raw bytes (uint8), truth values (int8, 0 or 1)."""


@dataclass(frozen=True)
class Tensor:
    """A value computed at run time. `layer` names the model layer whose output it is, if it is one's; `zeros` is the
    share of its numbers that mean zero, as far as samples have told."""

    name: str
    shape: Shape
    dtype: str = "float32"
    quant: Quant | None = None
    layer: str | None = None
    zeros: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it holds numbers that mean themselves, and so no quantization may change its format."""
        return self.quant == WHOLE and self.dtype != "int16"

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Constant:
    """A value known at build time."""

    name: str
    data: Array
    quant: Quant | None = None

    def __post_init__(self) -> None:
        self.data.setflags(write=False)


def _frozen(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(mapping))


@dataclass(frozen=True, eq=False)
class Op(Generic[A]):
    """One operation; its type may tell the class of its attributes.

    `constants` maps a role ("kernel", "bias") to a constant's name.

    With `outer` the operation is applied to each index of these leading axes of all its tensors by itself,
    as Keras' TimeDistributed does. `arithmetic` is that of the device for which a quantized graph was made.
    """

    name: str
    attributes: A
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    outer: Shape = ()
    arithmetic: Arithmetic | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "constants", _frozen(self.constants))

    @property
    def kind(self) -> str:
        return self.attributes.kind


@dataclass(frozen=True)
class State:
    """A value that outlives a run: `before` holds it when a run begins, `after` becomes it when the run ends.

    A new sequence begins with the constant `initial`, or with the numbers that mean zero. Of `banks` values that take
    turns, each run has its own: that of so many runs before.
    """

    before: str
    after: str
    initial: str | None = None
    banks: int = 1


@dataclass(frozen=True)
class Stream:
    """A run is a step of a stream: it takes `hop` rows of the input's `axis`. Outputs count after `warm_up` steps."""

    axis: int
    hop: int
    warm_up: int = 0


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole network; `ops` are in an order in which they can be computed."""

    name: str
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict)
    """Layer -> how many parameters the tool that made the model counts in it, where it counts otherwise than we do."""
    stream: Stream | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _frozen(self.parameters))
        object.__setattr__(self, "tensors", _frozen(self.tensors))
        object.__setattr__(self, "constants", _frozen(self.constants))
