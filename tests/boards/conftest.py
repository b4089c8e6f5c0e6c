"""Boards in their emulators: what is there of them here, models built once for each, and a firmware that fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.firmware import program as firmware
from nnbuild.backends.firmware.layout import LINK_STACK, Layout
from nnbuild.backends.firmware.line import open_line
from nnbuild.backends.firmware.linker_script import linker_script
from nnbuild.backends.recipe import compile_all, link
from nnbuild.backends.registry import backend_of
from nnbuild.board.board import Board
from nnbuild.board.tables import boards, find
from nnbuild.device.link import Link

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MNIST = ROOT / "examples" / "mnist"
SHARED = ROOT.parent / "shared" / "models"
FIRMWARE_BOARDS = [board.name for board in boards() if board.output == "firmware"]
EMULATED = [board.name for board in boards() if board.output == "firmware" and board.emulator is not None]

BAD_ADDRESSES = {"rv32": "0x08000000u", "microbit": "0x60000000u"}
"""Where nothing is, for boards where that is not true of the last quarter but one of the address space."""


def needs_tools(board: Board) -> None:
    """Skips by name where a board's compiler or emulator is not installed."""
    if not any(shutil.which(chain.command[0]) for chain in board.toolchains):
        pytest.skip(f"no compiler for {board.name} is installed")
    if board.emulator is not None and shutil.which(board.emulator.command[0]) is None:
        pytest.skip(f"{board.emulator.command[0]} is not installed")


Connect = Callable[[str], "contextmanager[Link]"]


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds, once for each board, the firmware whose input says what is to go wrong."""
    built: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in built:
            board = find(name)
            needs_tools(board)
            folder = tmp_path_factory.mktemp(name)
            (folder / "nn_target.c").write_bytes((HERE / "nn_target.c").read_bytes())
            layout = Layout("ram", (board.stack_budget or 0) + LINK_STACK, {})
            (folder / firmware.SCRIPT).write_text(linker_script(board, layout))
            recipe = backend_of(board).recipe(board, ["nn_target.c"])
            bad = BAD_ADDRESSES.get(name, "0xf0000000u")
            flags = (*recipe.flags, f"-DBAD_ADDRESS={bad}")
            recipe = replace(recipe, flags=flags)
            built[name] = link(recipe, compile_all(recipe, folder), folder)
        return built[name]

    return build


@pytest.fixture
def connect(faulty: Callable[[str], Path]) -> Callable[[str], object]:
    """A session with the failing firmware on a board."""

    @contextmanager
    def connected(name: str) -> Iterator[Link]:
        line = open_line(find(name), faulty(name), None)
        with line.transport:
            session = Link(line.transport, unit=line.unit, per_tick=line.per_tick)
            session.hello()
            yield session

    return connected
