"""The back end of boards that are this PC."""

from __future__ import annotations

from pathlib import Path

from nnbuild.backends.backend import Backend, Line
from nnbuild.backends.host.program import PROGRAM, file_names, files, recipe
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.device.transport import ProcessTransport


def open_line(board: Board, program: Path, port: str | None) -> Line:
    if port is not None:
        raise UsageError(f"board {board.name!r}", "it runs on this PC and has no port.", "Leave out --port.")
    return Line(ProcessTransport([program.resolve()], name=f"{board.name} program"))


BACKEND = Backend(
    program=lambda prefix: PROGRAM,
    file_names=file_names,
    files=files,
    open_line=open_line,
    recipe=recipe,
    quick=True,
    threads=True,
)
