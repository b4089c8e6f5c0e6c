"""The C files as they are, for the user's own build."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = None
EXAMPLE = None


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    return dict(artifact.files)


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
