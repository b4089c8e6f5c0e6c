"""Starts a firmware in an emulator, or finds it at a serial port, and opens the connection to it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from nnbuild.backends.backend import Line
from nnbuild.backends.firmware.image import addresses, used_bytes
from nnbuild.backends.qemu_plugins import plugin
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.board.board import Board, Emulator, StandIn
from nnbuild.device.cores import CoreMeter
from nnbuild.device.emulator import EmulatorTransport, require
from nnbuild.device.transport import ProcessTransport, SerialTransport

MARKS = {
    **{"mark": "nn_cores_mark", "from": "nn_waiting_begin", "to": "nn_waiting_end"},
    **{"copy": "nn_copying_begin", "copied": "nn_copying_end"},
}
"""Options of the instruction counter, and the program's symbols that they refer to."""
UNICORN = "Type pip install unicorn."


def open_line(board: Board, program: Path, port: str | None) -> Line:
    return Line(SerialTransport(port, board.baud)) if port is not None else _emulated(board, program)


def refuse_to_run(board: Board, port: str | None) -> None:
    """Refuses what no emulator can run, without a program."""
    if port is None:
        _emulator_of(board)


def _emulator_of(board: Board) -> Emulator:
    """The board's emulator, if it can run its programs; only unicorn simulates a device beside the processor."""
    where, emulator = f"board {board.name!r}", board.emulator
    if emulator is None:
        step = "Connect the real one and name its port: --port /dev/ttyACM0"
        raise ToolMissing(where, "no emulator supports it.", step)
    if board.real_device:
        cause = f"the driver {board.real_device} needs its device, which no emulator has."
        step = "Connect the real one and name its port. A driver that needs none says so: see 'nnbuild docs devices'."
        raise ToolMissing(where, cause, step)
    if board.mapped is None:
        return emulator
    if emulator.stand_in is None:
        cause = "a device beside its processor is simulated in unicorn only, which does not have this board."
        raise ToolMissing(where, cause, "Take board stm32f405, or connect the real one and name its port.")
    if importlib.util.find_spec("unicorn") is None:
        cause = "a device beside its processor is simulated in unicorn, which is not installed."
        raise ToolMissing(where, cause, UNICORN)
    return emulator


def _emulated(board: Board, program: Path) -> Line:
    emulator = _emulator_of(board)
    name = f"emulated {board.name}"
    if board.mapped is not None:
        return Line(ProcessTransport(_with_device(board, emulator, program), name), "instructions")
    if emulator.stand_in is not None and shutil.which(emulator.command[0]) is None:
        if importlib.util.find_spec("unicorn") is None:
            install = f"{emulator.install}, or pip install unicorn"
            require(emulator.command, f"board {board.name!r}", install)
        print(f"nnbuild: {emulator.command[0]} is not installed; unicorn runs {board.name}", file=sys.stderr)
        return Line(ProcessTransport(_unicorn(board, emulator.stand_in, program), name), "instructions")
    require(emulator.command, f"board {board.name!r}", emulator.install)
    _refuse_what_it_lacks(board, emulator, program)
    if not any("{cores}" in word for word in emulator.command):
        return Line(
            EmulatorTransport(name, emulator.command, program.resolve()), "instructions", emulator.instructions_per_tick
        )
    meter = CoreMeter()
    command = [word.replace("{cores}", _core_counter(board, program, meter)) for word in emulator.command]
    return Line(EmulatorTransport(name, command, program.resolve()), "instructions", meter=meter)


def _core_counter(board: Board, program: Path, meter: CoreMeter) -> str:
    """The plugin that counts for each core, and its options for the program."""
    symbols = addresses(program, MARKS.values())
    told = "".join(f",{word}={symbols[name]:#x}" for word, name in MARKS.items())
    return f"{plugin(board, 'nn_core_counter')},counts={meter.path}{told}"


def _refuse_what_it_lacks(board: Board, emulator: Emulator, program: Path) -> None:
    if not emulator.lacks:
        return
    used = used_bytes(program, board.memories)
    for name in emulator.lacks:
        if used[name]:
            cause = f"it has {used[name]:,} bytes in a memory {name!r}, which {emulator.command[0]} does not have."
            raise UsageError(str(program), cause, "Name the device's port, or build it without --memory.")


def _with_device(board: Board, emulator: Emulator, program: Path) -> list[str | Path]:
    """The command with a simulated device."""
    assert emulator.stand_in is not None
    assert board.mapped is not None
    return [*_unicorn(board, emulator.stand_in, program), "--beside", board.mapped().option()]


def _unicorn(board: Board, stand_in: StandIn, program: Path) -> list[str | Path]:
    """The command that runs the same image without QEMU. Its counter counts single instructions."""
    command: list[str | Path] = [sys.executable, "-m", "nnbuild.device.unicorn_board", program.resolve()]
    for memory in board.memories:
        command += ["--memory", f"{memory.origin:#x}:{memory.length:#x}"]
    return [*command, "--uart", hex(stand_in.uart), "--counter", hex(stand_in.counter)]
