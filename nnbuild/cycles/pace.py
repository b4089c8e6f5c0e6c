"""What kernels are priced by: about the cycles of instructions, words and branches on a board's part."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.bill import Pace
from nnbuild.board.board import Board

CORES = {
    "cortex-m4": Pace(word=1, branch=1),
    "cortex-m33": Pace(word=0.8, branch=0.5, run=0),
    "cortex-m7": Pace(instruction=0.55, word=0.2, branch=0, run=0),
}


def pace_of(board: Board) -> Pace | None:
    """None where only instructions are known: the bills of kernels for Cortex-M0 and M3 do not tell loads apart."""
    core, flash = CORES.get(board.core or ""), board.flash_speed
    if core is None:
        return None
    kept = max(flash.code_lines - 2, 0) * flash.line  # a body begins within a line, and another one is read ahead
    return replace(core, wait=flash.wait, read=flash.read, kept=kept)
