"""A Zephyr module: sources, Kconfig, west's module file, and a sample."""

from __future__ import annotations

from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = None
EXAMPLE = "samples/classify/src"
TEXTS = {
    "zephyr/module.yml": "zephyr/module.yml",
    "CMakeLists.txt": "zephyr/CMakeLists.txt",
    "Kconfig": "zephyr/Kconfig",
    "README.md": "zephyr/README.md",
    "samples/classify/CMakeLists.txt": "zephyr/sample.cmake",
    "samples/classify/sample.yaml": "zephyr/sample.yaml",
    "samples/classify/src/main.c": "program.c",
}
ENTRY = {"ENTRY": "int main(void)", "FAILED": "return 1;", "DONE": "    return 0;\n"}


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    made = component(plan, artifact, TEXTS, "    {name}", **ENTRY)
    settings = f"# {plan.prefix}: printed by nnbuild\nCONFIG_NN_{plan.prefix.upper()}=y\nCONFIG_MAIN_STACK_SIZE=4096\n"
    settings += "CONFIG_CBPRINTF_FP_SUPPORT=y\n"  # the score is a float
    return {**made, "samples/classify/prj.conf": settings.encode()}


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
