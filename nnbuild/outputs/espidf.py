"""An ESP-IDF component, with a project that runs it."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = None
EXAMPLE = "examples/classify/main"
TEXTS = {
    "CMakeLists.txt": "espidf/CMakeLists.txt",
    "idf_component.yml": "espidf/idf_component.yml",
    "README.md": "espidf/README.md",
    "examples/classify/CMakeLists.txt": "espidf/example.cmake",
    "examples/classify/main/CMakeLists.txt": "espidf/main.cmake",
    "examples/classify/main/idf_component.yml": "espidf/main.yml",
    "examples/classify/main/main.c": "program.c",
}
ENTRY = {"ENTRY": "void app_main(void)", "FAILED": "return;", "DONE": ""}


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    return component(plan, artifact, TEXTS, '    "{name}"', **ENTRY)


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
