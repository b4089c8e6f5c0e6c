"""Build recipes as values: the command line executes them, SCons turns them into nodes."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnbuild.backends.object_cache import KEPT, key_of
from nnbuild.base.depfile import prerequisites
from nnbuild.base.errors import NnbuildError, ToolMissing, UsageError
from nnbuild.base.progress import phase
from nnbuild.board.board import Board, Toolchain

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


OWN_OBJECT = "own_"
"""Prefix of the objects of users' sources, which keeps them apart from nnbuild's."""
OVERFLOW = re.compile(r"region [`'](\w+)'[^\n]*overflowed by (\d+) bytes")
"""Linkers' message that a memory is full."""
SMALLER = "Take a smaller model, --optimize size, or a larger board."


@dataclass(frozen=True)
class Recipe:
    """`generated` are file names in the model's folder, `firmware` whole paths, `script` the linker script, also in the
    folder."""

    program: str
    toolchain: Toolchain
    generated: tuple[str, ...]
    firmware: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    script: str | None = None
    own: tuple[Path, ...] = ()
    """The user's own sources, compiled without nnbuild's strict warnings."""

    def __post_init__(self) -> None:
        """Refuses two sources of the same name: objects are named after their sources, so the second would replace the
        first."""
        ours = {path.stem for path in self.firmware}
        for name in self.generated:
            if Path(name).stem in ours:
                raise UsageError(
                    f"{name!r} of the model",
                    "the program already has a file of that name.",
                    "Give the model another name, with name= for scons and --name for nnbuild.",
                )

    @property
    def compiler(self) -> tuple[str, ...]:
        return self.toolchain.command

    @property
    def libraries(self) -> tuple[str, ...]:
        return self.toolchain.libraries

    @property
    def stems(self) -> tuple[str, ...]:
        """The names of the objects, without suffix."""
        return (*(Path(name).stem for name in self.generated), *(path.stem for path in self.firmware))

    @property
    def stack_table(self) -> str:
        """Suffix of the files that describe frames and calls: gcc's tables, or the objects themselves."""
        return ".ci" if any(flag.startswith("-fcallgraph-info") for flag in self.toolchain.stack_flags) else ".o"

    def made_of(self, source: str) -> tuple[str, ...]:
        """Suffixes of the files that the compiler writes for a source, the object first."""
        flags = self.toolchain.stack_flags if source.endswith(".c") else ()
        tables = {".su": "-fstack-usage", ".ci": "-fcallgraph-info"}
        return (".o", *(table for table, flag in tables.items() if any(each.startswith(flag) for each in flags)))

    @property
    def own_flags(self) -> tuple[str, ...]:
        return (*(flag for flag in self.flags if flag not in WARNINGS), "-std=gnu11", "-Wall", "-Dmain=nn_application")

    def compile_command(self, source: Path, target: Path, folder: Path) -> list[str]:
        includes = [f"-I{folder}", *(f"-I{path}" for path in self.includes)]
        flags = (*self.own_flags, "-MMD") if source in self.own else self.flags
        return [*self.compiler, *flags, *includes, "-c", str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path) -> list[str]:
        script = ["-T", str(target.parent / self.script)] if self.script else []
        libraries = [f"-l{name}" for name in self.libraries]
        return [
            *self.compiler,
            *self.flags,
            *map(str, objects),
            *self.link_flags,
            *script,
            *libraries,
            "-o",
            str(target),
        ]


def toolchain_for(board: Board) -> Toolchain:
    """The first installed toolchain of the board."""
    for toolchain in board.toolchains:
        if _is_there(toolchain):
            return toolchain
    names = ", ".join(_name_of(toolchain) for toolchain in board.toolchains)
    ways = ", or ".join(toolchain.install for toolchain in board.toolchains)
    raise ToolMissing(f"board {board.name!r}", f"none of its compilers is installed ({names}).", f"{ways}")


def _is_there(toolchain: Toolchain) -> bool:
    """Whether its program is installed; Python modules are looked up as such."""
    command = toolchain.command
    if command[0] == sys.executable and command[1] == "-m":
        return importlib.util.find_spec(command[2]) is not None
    return shutil.which(command[0]) is not None


def _name_of(toolchain: Toolchain) -> str:
    return toolchain.command[2] if toolchain.command[0] == sys.executable else toolchain.command[0]


def choose(board: Board) -> Toolchain:
    """The toolchain for a board; prints a note if it is not the first choice."""
    chosen = toolchain_for(board)
    if chosen is not board.toolchains[0]:
        first = _name_of(board.toolchains[0])
        print(f"nnbuild: {first} is not installed; {_name_of(chosen)} compiles for {board.name}", file=sys.stderr)
    return chosen


def compile_all(recipe: Recipe, folder: Path) -> list[Path]:
    """Compiles in the folder of the generated files."""
    objects = []
    for source in (*(folder / name for name in recipe.generated), *recipe.firmware):
        target = folder / f"{source.stem}.o"
        with phase(f"compiling {source.name}"):
            _compile_once(recipe, source, target, folder)
        objects.append(target)
    for source, name in zip(recipe.own, own_objects(recipe.own), strict=True):
        target = folder / name
        with phase(f"compiling {source.name}"):
            _compile(recipe, source, target, folder)
        objects.append(target)
    return objects


def own_objects(sources: Sequence[Path]) -> list[str]:
    """A name for the object of each of the user's sources, also where sources of two folders have the same one."""
    stems = [source.stem for source in sources]
    return [f"{OWN_OBJECT}{stem}{'' if stems.index(stem) == i else f'.{i}'}.o" for i, stem in enumerate(stems)]


def read_by(sources: Sequence[Path], folder: Path) -> list[Path]:
    """The files that the user's sources were compiled from, headers included; not those that are made in the folder."""
    tables = (folder / Path(name).with_suffix(".d") for name in own_objects(sources))
    found = [path for table in tables if table.exists() for path in prerequisites(table.read_text("utf-8"))]
    return [path for path in found if folder.resolve() not in path.resolve().parents]


def _compile_once(recipe: Recipe, source: Path, target: Path, folder: Path) -> None:
    """Compiles a source unless this process has compiled it before: nnbuild's own sources are the same for every
    model."""
    key = key_of(recipe.compile_command, source, folder, recipe.includes)
    if key is None or not KEPT.put_back(key, target):
        _compile(recipe, source, target, folder)
        if key is not None:
            KEPT.keep(key, target)


def _compile(recipe: Recipe, source: Path, target: Path, folder: Path) -> None:
    """Compiles; if a compiler cache returned the object without its stack tables, compiles again bypassing the
    cache."""
    table = target.with_suffix(recipe.stack_table)
    table.unlink(missing_ok=True)
    command = recipe.compile_command(source, target, folder)
    _run(command, source.name)
    if not table.exists() and source.suffix == ".c":
        _run(command, source.name, {**os.environ, "CCACHE_DISABLE": "1"})


def link(recipe: Recipe, objects: Sequence[Path], folder: Path) -> Path:
    program = folder / recipe.program
    with phase(f"linking {recipe.program}"):
        _run(recipe.link_command(objects, program), recipe.program)
    return program


def raise_if_full(what: str, said: str) -> None:
    """Reports a linker's message that a memory is full as an error. Some linkers repeat it for each section."""
    over = max(((int(size), memory) for memory, size in OVERFLOW.findall(said)), default=None)
    if over is not None:
        cause = f"the program is {over[0]:,} bytes larger than the memory {over[1]!r} of the board."
        apart = over[1] not in ("flash", "flash_data", "ram")
        step = "Leave [memory] code out of the board's table, or take --optimize size." if apart else SMALLER
        raise UsageError(what, cause, step)


def _run(command: list[str], what: str, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=environment)
    if done.returncode != 0:
        raise_if_full(what, done.stderr)
        if os.strerror(errno.ENOSPC) in done.stderr:
            raise UsageError(what, "the disk is full.", "Free some space, or write elsewhere (TMPDIR, -o).")
        raise NnbuildError(what, f"the compiler rejected it:\n{done.stderr.strip()}\n", f"It was: {' '.join(command)}")
