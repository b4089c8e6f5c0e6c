"""The interface of encodings: the parts that are stored, their bytes, and the decoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
E = TypeVar("E", bound="Encoded")


class Encoded(ABC):
    """A constant in its stored form. Readers know what is not in `parts`: shapes, numbers of bits."""

    shape: tuple[int, ...]

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Array]:
        """The stored arrays, by name."""

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    @abstractmethod
    def decode(self) -> Array:
        """The integers that it encodes."""


def proved(encoded: E, values: Array) -> E:
    """The encoding, after checking that it decodes to these values."""
    if not np.array_equal(encoded.decode(), values):
        raise AssertionError(f"{type(encoded).__name__} does not decode to its input")
    return encoded


def smallest_unsigned(values: Array, least: int = 8) -> Array:
    """Converts to the smallest unsigned type of at least `least` bits that holds all values."""
    largest = int(values.max(initial=0))
    kinds = [kind for kind in (np.uint8, np.uint16, np.uint32) if 8 * np.dtype(kind).itemsize >= least]
    return values.astype(next(kind for kind in kinds if largest <= np.iinfo(kind).max))
