"""A Meson subproject that provides a dependency."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = None
EXAMPLE = None


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    return component(plan, artifact, {"meson.build": "meson/meson.build"}, "    '{name}',")


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
