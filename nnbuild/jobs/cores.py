"""Chooses a board's cores, and the instruction set of a program for cores that differ."""

from __future__ import annotations

from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.board.cores import chosen_cores
from nnbuild.board.tables import with_core
from nnbuild.isa.registry import find
from nnbuild.plan.cores import Cores, OwnMemory


def cores_of(board: Board, asked: int | None) -> Cores:
    """The cores that compute a step together; `asked` is the user's number of cores."""
    count = chosen_cores(board.name, board.cores, asked)
    own = board.cores.local if board.cores.computes_locally else None
    local = OwnMemory(own.length, own.copy) if own is not None else None
    speeds = tuple(kind.speed for kind in board.cores.kinds[:count])
    return Cores(count, board.cores.fork, board.cores.each, local, speeds)


def for_cores(board: Board, asked: int | None) -> Board:
    """The board as seen by a program for these cores: with the features that all of them have."""
    kinds = board.cores.kinds[: chosen_cores(board.name, board.cores, asked)]
    has = [find(kind.isa, board.architecture).features | kind.features for kind in kinds]
    least = next((kind for kind, own in zip(kinds, has, strict=True) if all(own <= other for other in has)), None)
    if kinds and least is None:
        cause = f"each of its first {len(kinds)} cores has a feature that another of them lacks."
        step = "Give a smaller --cores, or list for one of the [[cores.kinds]] only the features that all have."
        raise UsageError(f"board {board.name!r}", cause, step)
    return board if least is None else with_core(board, least)
