"""The commands of a build."""

from __future__ import annotations

from pathlib import Path

from nnbuild.backends.registry import backend_of
from nnbuild.board.tables import find

FILES = ("m.h", "m_private.h", "m.c", "m_kernels.c", "m_weights.c")


def test_a_folder_with_a_comma() -> None:
    """A compiler splits what follows -Wl at commas."""
    board = find("stm32")
    command = backend_of(board).recipe(board, FILES).link_command([], Path("/a,b/program.elf"))
    at = command.index("-T")
    assert command[at + 1] == "/a,b/program.ld"
    assert not [word for word in command if word.startswith("-W") and "/a,b" in word]
