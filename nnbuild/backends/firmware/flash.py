"""Flashes a program, with a tool that the board's table names and that is installed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from elftools.common.exceptions import ELFError

from nnbuild.backends.firmware.image import Image, hex_lines, marks, read_image
from nnbuild.backends.firmware.linker_script import BOARD_MARK, board_mark
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.board.board import Board, Flash, FlashTool
from nnbuild.device.bootloader import HalfFlashed, Part, Progress, fill_up, flash_serial, half_flashed
from nnbuild.device.transport import SerialTransport

EVEN = "E"
"""The parity that the ROM bootloader requires. The link itself uses none."""


def flash_program(
    board: Board,
    program: Path,
    *,
    port: str | None = None,
    tool: str | None = None,
    progress: Callable[[str], Progress],
) -> str:
    """Flashes an ELF and starts it; returns the name of the tool used."""
    chosen = choose(board, tool, port)
    image = image_for(board, program)
    if chosen.commands:
        _with_tool(board, chosen, program, image)
    else:
        assert port is not None, "choose() takes our own tool only with a port"
        part = Part(board.name, image.address, _flash_of(board).chip, _flash_of(board).pages)
        with SerialTransport(port, board.baud, EVEN) as line:
            flash_serial(line, part, image.data, progress)
    return chosen.name


def _flash_of(board: Board) -> Flash:
    if board.flash is None:
        step = "Its emulator takes the program as it is." if board.emulator else "All boards: nnbuild boards"
        raise UsageError(f"board {board.name!r}", "its table names no flash tool.", step)
    return board.flash


def choose(board: Board, wanted: str | None, port: str | None) -> FlashTool:
    """The requested tool; otherwise the board's first usable one."""
    tools = _flash_of(board).tools
    for tool in tools:
        if tool.name == wanted or (wanted is None and _usable(tool, port)):
            return _checked(board, tool, port)
    names = ", ".join(tool.name for tool in tools)
    if wanted is not None:
        raise UsageError(
            f"--tool {wanted}", f"board {board.name!r} does not support this tool.", f"Its tools: {names}."
        )
    ways = "; or ".join(tool.install for tool in tools)
    raise ToolMissing(f"board {board.name!r}", f"no tool to flash it is usable ({names}).", f"{ways}")


def _usable(tool: FlashTool, port: str | None) -> bool:
    return all(map(_is_there, tool.commands)) if tool.commands else port is not None


def _is_there(command: tuple[str, ...]) -> bool:
    return shutil.which(command[0]) is not None


def _checked(board: Board, tool: FlashTool, port: str | None) -> FlashTool:
    if not _usable(tool, port):
        cause = "it is not installed." if tool.commands else "no port is named."
        raise ToolMissing(f"--tool {tool.name}", cause, f"For board {board.name!r}: {tool.install}")
    return tool


def image_for(board: Board, program: Path) -> Image:
    """The program's image, if it was built for this board and fits its flash."""
    if not program.is_file():
        raise UsageError(str(program), "There is no such program.", "Build it first, or leave out --program.")
    try:
        found = marks(program, BOARD_MARK)
        image = read_image(program)
    except (OSError, ValueError, ELFError) as error:
        raise UsageError(
            str(program), f"It is not an ELF program ({error}).", "Give the program.elf of a build."
        ) from None
    if found != [board_mark(board)]:
        names = " and ".join(name.removeprefix(BOARD_MARK).replace("_", "-") for name in found)
        made = f"It was built for {names}, not for {board.name}." if names else "It does not name its board."
        raise UsageError(str(program), made, f"Build it for {board.name}.")
    flash, size = board.memory("flash"), len(fill_up(image.data))
    if image.address != flash.origin:
        at = f"It begins at {image.address:#010x}, and the flash of {board.name} at {flash.origin:#010x}."
        raise UsageError(str(program), at, f"Build it for {board.name}.")
    if size > flash.length:
        over = f"It takes {size:,} bytes, {size - flash.length:,} more than the flash of {board.name} has."
        raise UsageError(str(program), over, "Quantize the model, or take a larger part.")
    return image


def _with_tool(board: Board, tool: FlashTool, program: Path, image: Image) -> None:
    """Shows each command before it runs; its output goes to the user."""
    with tempfile.TemporaryDirectory(prefix="nnbuild-flash-") as name:
        folder = Path(name)
        (folder / "program.bin").write_bytes(image.data)
        (folder / "program.hex").write_text("".join(f"{line}\n" for line in hex_lines(image)), "utf-8")
        places = {"elf": str(program), "address": f"{image.address:#010x}", "size": str(len(image.data))}
        places |= {kind: str(folder / f"program.{kind}") for kind in ("bin", "hex", "read")}
        for command in tool.commands:
            _run(board, tool, command, places)
        read = folder / "program.read"
        if any("{read}" in word for command in tool.commands for word in command) and _content(read) != image.data:
            cause = "The data read back differs from the data written."
            raise half_flashed(f"{tool.name} on board {board.name!r}", cause)


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _run(board: Board, tool: FlashTool, command: tuple[str, ...], places: Mapping[str, str]) -> None:
    words = [word.format(**places) for word in command]
    print(shlex.join(words), file=sys.stderr, flush=True)
    try:
        status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode
    except KeyboardInterrupt:
        raise half_flashed(tool.name, "It was stopped.") from None
    if status != 0:
        raise HalfFlashed(
            f"{tool.name} on board {board.name!r}",
            f"It ended with code {status}, and the part may be erased or half written.",
            "See its output above, check the probe and its cable, and flash again.",
        )
