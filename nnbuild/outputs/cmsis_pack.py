"""A CMSIS-Pack, and the same sources as a layer of a csolution project with an example."""

from __future__ import annotations

import zipfile
from html import escape
from pathlib import Path

from nnbuild import __version__
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact, refuse_foreign
from nnbuild.emit.text import comment_safe
from nnbuild.outputs.component import component
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = "array"
"""Not every tool gives the assembler a search path for a .bin."""
EXAMPLE = "examples/classify"
USUAL = "ARMCM4"
"""Name in Arm's device pack for a core that the board does not specify."""
PACKED = ("src/", "README.md")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every file in the .pack, so that the same model gives the same bytes."""


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    p = plan.prefix
    sources = [name for name in artifact.files if name.endswith(".c")]
    texts = {
        _description(p): "cmsis/pack.pdsc",
        f"{p}.clayer.yml": "cmsis/layer.yml",
        "README.md": "cmsis/README.md",
        "examples/classify/classify.csolution.yml": "cmsis/csolution.yml",
        "examples/classify/classify.cproject.yml": "cmsis/cproject.yml",
        "examples/classify/main.c": "program.c",
    }
    return component(
        plan,
        artifact,
        texts,
        '        <file category="source" name="{name}"/>',
        FILES="\n".join(f"        - file: src/{name}" for name in sources),
        TITLE=escape(comment_safe(plan.graph.name)),
        DEVICE=_device(board.core),
        ENTRY="int main(void)",
        FAILED="return 1;",
        DONE="    return 0;\n",
    )


def refuse(board: Board, plan: Plan, folder: Path) -> None:
    """A file of somebody else's at the place of the pack."""
    refuse_foreign(folder / _pack(plan), b"nnbuild")


def _pack(plan: Plan) -> str:
    return f"nnbuild.{plan.prefix}.{__version__}.pack"


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    """Packs the files that the description names."""
    name = _pack(plan)
    there = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    packed = [each for each in there if each.startswith(PACKED) or each == _description(plan.prefix)]
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as pack:
        for each in packed:
            pack.writestr(zipfile.ZipInfo(each, EPOCH), (folder / each).read_bytes(), zipfile.ZIP_DEFLATED)
    return [name]


def _device(core: str | None) -> str:
    """The core's name in Arm's device pack, such as ARMCM0P for a cortex-m0plus."""
    return f"ARMC{core.removeprefix('cortex-').replace('plus', 'p').upper()}" if core else USUAL


def _description(prefix: str) -> str:
    return f"nnbuild.{prefix}.pdsc"
