"""A Bazel module with one library."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = "array"
"""A sandbox would hide a .bin that no rule names."""
EXAMPLE = None
TEXTS = {"BUILD.bazel": "bazel/BUILD.bazel", "MODULE.bazel": "bazel/MODULE.bazel"}


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    return component(plan, artifact, TEXTS, '        "{name}",')


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
