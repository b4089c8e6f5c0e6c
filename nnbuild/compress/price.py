"""The interface that prices weights; the planner implements it, since this package does not import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Price:
    """Bytes of flash, constants and code, and the cost of a run."""

    bytes: int
    cycles: float


@dataclass(frozen=True)
class Whole:
    """Bytes of flash of a whole model, in total and by operation."""

    bytes: int
    by_op: Mapping[str, int]


class Board(Protocol):
    def site(self, site: Site) -> Price:
        """The price of a single operation: of its fastest kernel, or of the smallest when optimizing for size."""

    def among(self, graphs: Iterable[Graph]) -> Board:
        """The board for a program that already has the routines of these graphs."""

    def whole(self, graph: Graph) -> Whole: ...

    def better(self, one: Price, other: Price) -> bool:
        """Whether `one` is clearly cheaper by the optimization goal."""
