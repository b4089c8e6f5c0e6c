"""The host program: the model, the link, and a main that serves it over standard input and output."""

from __future__ import annotations

from collections.abc import Iterable

from nnbuild.backends.cores import CORES, cores_flags, cores_sources
from nnbuild.backends.link_binding import TARGET_FILE, target
from nnbuild.backends.recipe import WARNINGS, Recipe, choose
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board
from nnbuild.plan.plan import Plan

LINK = FIRMWARE / "link"
PLATFORM = FIRMWARE / "platform" / "host"
PROGRAM = "program"
POOL_STACK = 1024
"""Stack bytes for handing parts to the pool's threads, the C library's frames included."""


def recipe(board: Board, generated: Iterable[str]) -> Recipe:
    toolchain = choose(board)
    return Recipe(
        program=PROGRAM,
        toolchain=toolchain,
        generated=tuple(name for name in generated if name.endswith((".c", ".S"))),
        firmware=(*sorted(LINK.glob("*.c")), *sorted(PLATFORM.glob("*.c")), *cores_sources(board)),
        includes=(LINK, PLATFORM, CORES),
        flags=(*WARNINGS, *board.flags, *toolchain.flags, *toolchain.stack_flags, *cores_flags(board)),
        link_flags=(*board.link_flags, *toolchain.link_flags),
    )


def file_names(board: Board, prefix: str) -> list[str]:
    """The files beside the model's own, known before the model is read."""
    return [TARGET_FILE]


def files(board: Board, plan: Plan) -> dict[str, bytes]:
    return {TARGET_FILE: target(plan).encode()}
