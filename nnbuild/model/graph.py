"""The network as frozen values: tensors, constants and the operations between them.

There is no behaviour here: an operation's attributes, whose classes live in `nnbuild.ops`, define its meaning. Shapes
carry no batch axis; a network computes one sample at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha1
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

    A = TypeVar("A")  # Python 3.11 has no defaults of type variables.

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Quant:
    """real = scale * (integer - zero_point); one scale, or one for every index along `axis`. `whole` numbers are plain
    integers, which a scale of 1 that was measured does not make."""

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int | None = None
    whole: bool = field(default=False, repr=False)
    """Not shown, so that models keep the hash that their texts give."""

    @property
    def scale(self) -> float:
        if len(self.scales) != 1:
            raise ValueError("a per-channel quantization has no single scale")
        return self.scales[0]


WHOLE = Quant((1.0,), whole=True)
"""For plain integers without quantization: indices and counts (int32), raw bytes (uint8), booleans (int8, 0 or 1)."""


@dataclass(frozen=True)
class Tensor:
    """A value computed at run time. `layer` names the model layer whose output it is, if any; `zeros` is the share of
    its values that represent zero, as measured on samples."""

    name: str
    shape: Shape
    dtype: str = "float32"
    quant: Quant | None = None
    layer: str | None = None
    zeros: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it holds plain integers, whose format no quantization may change."""
        return self.quant is not None and self.quant.whole and self.dtype != "int16"

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

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal data."""
        return sha1(f"{self.data.dtype}{self.data.shape}".encode() + self.data.tobytes()).digest()


def _frozen(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(mapping))


@dataclass(frozen=True, eq=False)
class Op(Generic[A]):
    """One operation; its type parameter is the class of its attributes. `constants` maps a role ("kernel", "bias") to a
    constant's name.

    With `outer`, the operation is applied separately to each index of these leading axes of all its tensors, like
    Keras' TimeDistributed. `arithmetic` is that of the device for which the graph was quantized.
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
    """A value that persists between runs: `before` holds it when a run begins, `after` becomes it when the run ends. A
    new sequence begins with the constant `initial`, or with the integer that represents zero. With several `banks`,
    runs use them in turn: each sees the value of that many runs before.
    """

    before: str
    after: str
    initial: str | None = None
    banks: int = 1


@dataclass(frozen=True)
class Stream:
    """A run is a step of a stream: it takes `hop` rows along the input's `axis`. Outputs are valid after `warm_up`
    steps."""

    axis: int
    hop: int
    warm_up: int = 0


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole network; `ops` are in execution order."""

    name: str
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict)
    """Layer -> its number of parameters as counted by the tool that made the model, where that differs from nnbuild's
    count."""
    stream: Stream | None = None
    unlike: str = ""
    """Where the file's own interpreter computes otherwise than nnbuild, and what to do."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _frozen(self.parameters))
        object.__setattr__(self, "tensors", _frozen(self.tensors))
        object.__setattr__(self, "constants", _frozen(self.constants))
