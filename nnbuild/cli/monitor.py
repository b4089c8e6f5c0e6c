"""nnbuild monitor: shows the output of the user's own program, in the emulator or at a device's port."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.base.sanitize import printable
from nnbuild.board.board import with_baud
from nnbuild.board.tables import find
from nnbuild.cli.arguments import add_baud
from nnbuild.device.errors import TransportClosed
from nnbuild.device.transport import Transport

END_OF_TEXT = b"\x04"
"""Sent by firmware/platform/application/nn_app.c when main has returned."""
TURN = 0.25  # seconds between two looks at the clock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="a program built by nnbuild build --application")
    parser.add_argument("--board", required=True, help="the board it was built for")
    parser.add_argument("--port", help="the device's serial port (default: the emulator)")
    add_baud(parser)
    wait = "maximum seconds to listen (default: until main returns; Ctrl-C also ends it)"
    parser.add_argument("--seconds", type=float, metavar="S", help=wait)


def run(arguments: argparse.Namespace) -> int:
    board = with_baud(find(arguments.board), arguments.baud)
    backend = backend_of(board)
    if backend.application is None:
        step = "Start the program directly."
        raise UsageError(f"board {board.name!r}", "on this board, your program prints where you start it.", step)
    if not arguments.program.is_file():
        raise UsageError(str(arguments.program), "there is no such file.", "Build it with nnbuild build --application.")
    backend.refuse_program(board, arguments.program)
    line = backend.open_line(board, arguments.program, arguments.port)
    with line.transport as transport:
        return _show(transport, arguments.seconds)


def _show(transport: Transport, seconds: float | None) -> int:
    """Returns 0 when main has returned or the time is up; a fault raises an error."""
    begun, said = transport.now(), ""
    while seconds is None or transport.now() - begun < seconds:
        try:
            data = transport.read(TURN)
        except TransportClosed:
            break
        text, end, _ = data.partition(END_OF_TEXT)
        shown = printable(text.decode("utf-8", "replace").replace("\r", ""))
        sys.stdout.write(shown)
        sys.stdout.flush()
        said = (said + shown)[-1000:]
        if end:
            break
    if "\nfault: " in said:
        raise CheckFailed(
            "the program", "the processor faulted; its registers are above.", "Look up pc with addr2line."
        )
    return 0
