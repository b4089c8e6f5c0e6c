"""How a program is built, as a value: what the command line runs and SCons turns into nodes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nnbuild.board import Board
from nnbuild.errors import NnbuildError, ToolMissing

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


@dataclass(frozen=True)
class Recipe:
    """`generated` are names in the model's folder, `firmware` whole paths."""

    program: str
    compiler: str
    generated: tuple[str, ...]
    firmware: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def compile_command(self, source: Path, target: Path, folder: Path) -> list[str]:
        includes = [f"-I{folder}", *(f"-I{path}" for path in self.includes)]
        return [self.compiler, *self.flags, *includes, "-c", str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path) -> list[str]:
        return [self.compiler, *self.flags, *map(str, objects), *self.link_flags, "-o", str(target)]


def compiler_for(board: Board) -> str:
    """The first of the board's compilers that is installed."""
    for name in board.compilers:
        if shutil.which(name):
            return name
    raise ToolMissing(
        f"board {board.name!r}", f"none of its compilers is installed ({', '.join(board.compilers)}).", board.install
    )


def stack_flags(compiler: str) -> tuple[str, ...]:
    """Makes the compiler say what the stack bound is computed from."""
    return ("-fstack-size-section",) if "clang" in compiler else ("-fstack-usage", "-fcallgraph-info=su,da")


def compile_all(recipe: Recipe, folder: Path) -> list[Path]:
    """Compiles in the folder that holds the generated files."""
    objects = []
    for source in (*(folder / name for name in recipe.generated), *recipe.firmware):
        target = folder / f"{source.stem}.o"
        _run(recipe.compile_command(source, target, folder), source.name)
        objects.append(target)
    return objects


def link(recipe: Recipe, objects: Sequence[Path], folder: Path) -> Path:
    program = folder / recipe.program
    _run(recipe.link_command(objects, program), recipe.program)
    return program


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise NnbuildError(what, f"the compiler refused it:\n{done.stderr.strip()}\n", f"It was: {' '.join(command)}")
