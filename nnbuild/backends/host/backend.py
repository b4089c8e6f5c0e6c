"""The back end of boards that are this PC, or another machine emulated here."""

from __future__ import annotations

from pathlib import Path

from nnbuild.backends.backend import Backend, Line, RunStack
from nnbuild.backends.host.program import POOL_STACK, PROGRAM, file_names, files, recipe
from nnbuild.backends.qemu_plugins import plugin
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board, Emulator
from nnbuild.device.emulator import require
from nnbuild.device.transport import ProcessTransport

COUNTER = 1000
"""File descriptor of the counter: above all that a program opens."""


def open_line(board: Board, program: Path, port: str | None) -> Line:
    if port is not None:
        raise UsageError(f"board {board.name!r}", "it runs on this PC and has no port.", "Leave out --port.")
    if board.emulator is not None:
        return _emulated(board, board.emulator, program)
    return Line(ProcessTransport([program.resolve()], name=f"{board.name} program"))


def _emulated(board: Board, emulator: Emulator, program: Path) -> Line:
    """Runs an emulated program; its time is instructions, which nnbuild's plugin provides."""
    require(emulator.command, f"board {board.name!r}", emulator.install)
    places = {"image": program.resolve(), "plugin": plugin(board, "nn_counter"), "counter": COUNTER}
    command = [word.format(**places) for word in emulator.command]
    return Line(
        ProcessTransport(command, name=f"emulated {board.name}"), "instructions", emulator.instructions_per_tick
    )


BACKEND = Backend(
    program=lambda prefix: PROGRAM,
    file_names=file_names,
    files=files,
    open_line=open_line,
    recipe=recipe,
    stack=RunStack(parts=POOL_STACK),
    quick=True,
)
