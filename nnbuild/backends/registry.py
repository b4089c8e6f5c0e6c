"""The available back ends: each folder of this package is one, named by `output` in a board's table."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from nnbuild.backends.backend import Backend, Choice, Chosen
from nnbuild.backends.listing import names
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.board.tables import boards


@cache
def named(name: str) -> Backend:
    found: Backend = import_module(f"nnbuild.backends.{name}.backend").BACKEND
    return found


def backend_of(board: Board) -> Backend:
    if board.output not in names():
        cause = f"its board.toml has the unknown output {board.output!r}."
        raise UsageError(f"board {board.name!r}", cause, f"Outputs: {', '.join(names())}.")
    return named(board.output)


def bounded_entry(board: Board) -> str:
    """The function whose instructions are bounded in the board's programs; refuses a board of which none can be."""
    entry = backend_of(board).bounded
    if entry is None or board.core is None:
        cause = "a bound on instructions is proved only for programs of boards with a Cortex-M0, M3, M4 or M7."
        raise UsageError(f"board {board.name!r}", cause, "Name such a board (all boards: nnbuild boards), or no limit.")
    return entry


def backends() -> tuple[Backend, ...]:
    return tuple(map(named, names()))


def choices() -> tuple[Choice, ...]:
    """The choices of all back ends: a board's own are only known once its name is."""
    return tuple(choice for backend in backends() for choice in backend.choices)


def refuse_choices(board: Board, given: Chosen) -> None:
    """Refuses choices that are not those of the board's back end, and values that cannot be used."""
    for name, value in given.items():
        choice = _taken(board, name)
        if choice is None:
            able = ", ".join(each.name for each in boards() if _taken(each, name))
            step = f"Leave it out, or name a board that does: {able}."
            raise UsageError(f"board {board.name!r}", f"its build does not take the choice of a {name}.", step)
        if choice.refuse is not None:
            choice.refuse(value)


def _taken(board: Board, name: str) -> Choice | None:
    return next((choice for choice in backend_of(board).choices if choice.name == name), None)
