"""The commands of a build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.recipe import link
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.board.tables import find

FILES = ("m.h", "m_private.h", "m.c", "m_kernels.c", "m_weights.c")


def test_a_folder_with_a_comma() -> None:
    """A compiler splits what follows -Wl at commas."""
    board = find("stm32")
    command = backend_of(board).recipe(board, FILES).link_command([], Path("/a,b/program.elf"))
    at = command.index("-T")
    assert command[at + 1] == "/a,b/program.ld"
    assert not [word for word in command if word.startswith("-W") and "/a,b" in word]


def test_a_disk_that_fills_while_a_program_is_built(tmp_path: Path) -> None:
    """No fault of the C."""
    board = find("linux")
    recipe = backend_of(board).recipe(board, FILES)
    says = "echo 'ld: final link failed: No space left on device' >&2; exit 1"
    full = replace(recipe, toolchain=replace(recipe.toolchain, command=("sh", "-c", says)))
    with pytest.raises(UsageError) as raised:
        link(full, [], tmp_path)
    assert str(raised.value) == f"{recipe.program}: the disk is full. Free some space, or write elsewhere (TMPDIR, -o)."
