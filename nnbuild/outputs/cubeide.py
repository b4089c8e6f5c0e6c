"""A folder for STM32CubeIDE, to be dragged into a project."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = "array"
"""The IDE gives the assembler no search path for a .bin."""
EXAMPLE = None


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    """The C lies in the folder itself, so that one include path suffices."""
    around = component(plan, artifact, {"README.md": "cubeide/README.md"}, "")
    return {name.removeprefix("src/"): content for name, content in around.items()}


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
