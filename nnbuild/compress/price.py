"""What weights cost where they are stored and used, as the plan says: this room knows of no plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Price:
    """Bytes of flash, constants and code, and what a run takes."""

    bytes: int
    cycles: float


@dataclass(frozen=True)
class Whole:
    """Bytes of flash of a whole model: all of them, and those of each operation."""

    bytes: int
    by_op: Mapping[str, int]


class Board(Protocol):
    def site(self, site: Site) -> Price:
        """The price of an operation alone: of the fastest kernel, or of the smallest where bytes are wanted."""

    def among(self, graphs: Iterable[Graph]) -> Board:
        """The same for a program that has the routines with which these are computed."""

    def whole(self, graph: Graph) -> Whole: ...

    def better(self, one: Price, other: Price) -> bool:
        """Whether one is clearly the cheaper by what is to be optimized."""
