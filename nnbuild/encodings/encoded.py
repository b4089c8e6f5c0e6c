"""What all encodings of a constant have: the parts that are stored, their bytes, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
E = TypeVar("E", bound="Encoded")


class Encoded(ABC):
    """A constant as it is stored. What is not in `parts` is known to whoever reads them: shapes, numbers of bits."""

    shape: tuple[int, ...]

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Array]:
        """What is stored, by what it is."""

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    @abstractmethod
    def decode(self) -> Array:
        """The integers that it stands for."""


def proved(encoded: E, values: Array) -> E:
    """The same, once it has been decoded to these values."""
    if not np.array_equal(encoded.decode(), values):
        raise AssertionError(f"{type(encoded).__name__} does not decode to what it was made of")
    return encoded


def smallest_unsigned(values: Array, least: int = 8) -> Array:
    """In the smallest type that holds them all and has `least` bits."""
    largest = int(values.max(initial=0))
    kinds = [kind for kind in (np.uint8, np.uint16, np.uint32) if 8 * np.dtype(kind).itemsize >= least]
    return values.astype(next(kind for kind in kinds if largest <= np.iinfo(kind).max))
