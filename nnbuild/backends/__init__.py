"""What a board runs around a model: a host program, a firmware, a kernel module."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast

from nnbuild.backends.firmware import program as firmware
from nnbuild.backends.host import program as host
from nnbuild.backends.kmod import folder as kmod
from nnbuild.backends.recipe import Recipe
from nnbuild.board.board import Board
from nnbuild.plan.plan import Plan


class Output(Protocol):
    """What each module of this package can do."""

    PROGRAM: str
    """The name of the linked program."""

    def recipe(self, board: Board, generated: Iterable[str]) -> Recipe: ...

    def file_names(self, board: Board, prefix: str) -> list[str]: ...

    def files(self, board: Board, plan: Plan) -> dict[str, bytes]: ...

    def finish(self, program: Path) -> list[Path]: ...

    def finished_names(self) -> list[str]: ...


OUTPUTS: dict[str, Output] = {
    "host": cast(Output, host),
    "firmware": cast(Output, firmware),
    "kmod": cast(Output, kmod),
}


def output_of(board: Board) -> Output:
    return OUTPUTS[board.output]
