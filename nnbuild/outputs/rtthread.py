"""An RT-Thread component: the C with the SConscript that its build expects."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = None
EXAMPLE = None


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    sources = [name for name in artifact.files if name.endswith((".c", ".S"))]
    text = f"""\
# {plan.prefix}: printed by nnbuild
from building import *

folder = GetCurrentDir()
sources = {sources!r}
group = DefineGroup({plan.prefix!r}, sources, depend=[""], CPPPATH=[folder])

Return("group")
"""
    return {**artifact.files, "SConscript": text.encode()}


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
