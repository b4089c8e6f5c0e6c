"""The host program: the model, the link, and a main that serves it over standard input and output."""

from __future__ import annotations

from collections.abc import Iterable

from nnbuild.board import Board
from nnbuild.outputs.recipe import WARNINGS, Recipe, compiler_for, stack_flags
from nnbuild.paths import FIRMWARE

LINK = FIRMWARE / "link"
PLATFORM = FIRMWARE / "platform" / "host"


def recipe(board: Board, generated: Iterable[str]) -> Recipe:
    compiler = compiler_for(board)
    return Recipe(
        program="program",
        compiler=compiler,
        generated=tuple(name for name in generated if name.endswith((".c", ".S"))),
        firmware=(*sorted(LINK.glob("*.c")), *sorted(PLATFORM.glob("*.c"))),
        includes=(LINK,),
        flags=(*WARNINGS, *board.flags, *stack_flags(compiler)),
        link_flags=board.link_flags,
    )
