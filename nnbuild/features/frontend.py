"""The interface of front ends: how they frame samples, and what they compute from a frame, here and in C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from nnbuild.base.writer import Writer
from nnbuild.features.tables import Tables

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Framing:
    """Samples have one value for each of `axes`; `window` samples make a frame, and the next one begins after `step`.
    `rate` is the sample rate in hertz."""

    rate: int
    window: int
    step: int
    axes: int = 1
    sample: str = "int16"


@dataclass(frozen=True)
class Member:
    """A member of a front end's struct. Members that are `kept` from row to row start as zeros."""

    name: str
    dtype: str
    size: int
    kept: bool = False


class FrontEnd(ABC):
    """A front end as a value: the same settings give the same rows on every board, to the bit."""

    @property
    @abstractmethod
    def framing(self) -> Framing: ...

    @property
    @abstractmethod
    def row(self) -> tuple[str, int]:
        """The type of a row's values, and their number."""

    @property
    @abstractmethod
    def members(self) -> tuple[Member, ...]: ...

    @property
    @abstractmethod
    def told(self) -> str:
        """One line for headers and reports."""

    @abstractmethod
    def rows_and_kept(self, samples: Array) -> tuple[Array, dict[str, Array]]:
        """The rows of a whole stream from its start, and the value of each kept member after each row."""

    def rows(self, samples: Array) -> Array:
        return self.rows_and_kept(samples)[0]

    @abstractmethod
    def print_frame(self, w: Writer, tables: Tables) -> None:
        """Prints `frame`: from `samples` of the struct to its `row`."""
