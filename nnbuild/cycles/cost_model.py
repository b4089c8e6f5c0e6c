"""The cost model for kernels: approximate cycles of instructions, words and branches on a board's processor."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.cost_model import Pace
from nnbuild.board.board import Board

CORES = {
    "cortex-m4": Pace(word=1, branch=1),
    "cortex-m33": Pace(word=0.8, branch=0.5, load_run=0),
    "cortex-m7": Pace(instruction=0.55, word=0.2, branch=0, load_run=0),
}


EVERYTHING = 1 << 31
"""A code size that is never exceeded, for code outside flash."""
SMALL = Pace(instruction=1.4, word=0, branch=0, load_run=0)
"""Cortex-M0, for which kernels' costs do not distinguish loads."""


def pace_of(board: Board) -> Pace | None:
    """None where instruction counts are as good: on Cortex-M3, and on M0 unless it multiplies slowly."""
    core, flash = CORES.get(board.core or ""), board.flash_speed
    if board.multiplier > 1:
        core = replace(SMALL, product=board.multiplier - 1)
    if core is None:
        return None
    if board.code_memory is not None:
        return replace(core, wait_cycles=flash.wait, read_bytes=flash.read, cache_bytes=EVERYTHING)
    kept = max(flash.code_lines - 2, 0) * flash.line  # a loop body starts within a line, and another line is prefetched
    return replace(core, wait_cycles=flash.wait, read_bytes=flash.read, cache_bytes=kept)
