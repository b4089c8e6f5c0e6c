"""The stack of a model's run, where the compiler calls what the model does not name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnbuild.backends.object_audit import MEMORY_FUNCTIONS, helper_frames, model_stack
from nnbuild.board.board import Board
from nnbuild.board.tables import boards, find

COPY = """
#include <stdint.h>
void m_run(int16_t *restrict to, const int16_t *restrict from, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) to[i] = from[i];
}
"""


def test_a_copy_that_becomes_a_call_has_a_bound(tmp_path: Path) -> None:
    """GCC makes memcpy of such loops, and no table says what a C library's takes."""
    (tmp_path / "m.c").write_text(COPY)
    flags = ["-std=c99", "-O2", "-fstack-usage", "-fcallgraph-info=su,da"]
    subprocess.run(["gcc", *flags, "-c", "m.c"], cwd=tmp_path, check=True)
    assert "memcpy" in (tmp_path / "m.ci").read_text()
    counted = helper_frames(find("linux"))["memcpy"]
    assert counted < model_stack(find("linux"), "m", tmp_path).depth < 3 * counted


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_a_firmware_measures_its_own_memory_functions(board: Board) -> None:
    counted = set(MEMORY_FUNCTIONS) & set(helper_frames(board))
    assert counted == (set() if board.output == "firmware" else set(MEMORY_FUNCTIONS))
