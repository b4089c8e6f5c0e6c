"""Gets a board's program running and opens the line to it."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board import Board
from nnbuild.device.transport import ProcessTransport, Transport
from nnbuild.errors import UsageError


def open_line(board: Board, program: Path, port: str | None = None) -> Transport:
    """The caller closes the line, which ends what was started for it."""
    if port is not None:
        raise UsageError(f"board {board.name!r}", "it runs on this PC and has no port.", "Leave out --port.")
    return ProcessTransport([program.resolve()], name=f"{board.name} program")
