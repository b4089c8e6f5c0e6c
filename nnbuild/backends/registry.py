"""The available back ends: each folder of this package is one, named by `output` in a board's table."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from nnbuild.backends.backend import Backend, Choice
from nnbuild.backends.listing import names
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board


@cache
def named(name: str) -> Backend:
    found: Backend = import_module(f"nnbuild.backends.{name}.backend").BACKEND
    return found


def backend_of(board: Board) -> Backend:
    if board.output not in names():
        cause = f"its board.toml has the unknown output {board.output!r}."
        raise UsageError(f"board {board.name!r}", cause, f"Outputs: {', '.join(names())}.")
    return named(board.output)


def backends() -> tuple[Backend, ...]:
    return tuple(map(named, names()))


def choices() -> tuple[Choice, ...]:
    """The choices of all back ends: a board's own are only known once its name is."""
    return tuple(choice for backend in backends() for choice in backend.choices)
