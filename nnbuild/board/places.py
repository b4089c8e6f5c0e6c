"""Where the tables of boards lie: ours, those of installed packages, those of the user's project, a file that is named.

A table is NAME/board.toml or NAME.toml. A package offers its own by an entry point of the group `nnbuild.boards`, whose
value is a module; the tables lie in the module's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import BOARDS

GROUP = "nnbuild.boards"
OWN = "boards"
"""The folder of a project's own boards, beside its build."""


def name_of(file: Path) -> str:
    """A board's name is its file's, and goes into names of files and symbols."""
    name = file.resolve().parent.name if file.name == "board.toml" else file.stem
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        cause = "a board is named as its file, in letters, digits, '-' and '_'."
        raise UsageError(str(file), cause, "Give the file another name.")
    return name


def in_folder(folder: Path) -> list[Path]:
    """The tables in a folder."""
    nested = sorted(folder.glob("*/board.toml"))
    return nested + sorted(file for file in folder.glob("*.toml") if file.name != "board.toml")


@cache
def of_packages() -> tuple[Path, ...]:
    """The folders that installed packages offer. A package that is broken offers none: it is not ours to import it."""
    folders = []
    for point in entry_points(group=GROUP):
        found = find_spec(point.value)
        if found is not None and found.origin is not None:
            folders.append(Path(found.origin).parent)
    return tuple(sorted(folders))


def files() -> dict[str, Path]:
    """Every table that is known without being named, by its board's name."""
    return by_name(file for folder in _folders() for file in in_folder(folder))


def _folders() -> list[Path]:
    own = Path(OWN)
    outside = [own] if own.is_dir() and own.resolve() != BOARDS.resolve() else []
    return [BOARDS, *of_packages(), *outside]


def by_name(found: Iterable[Path]) -> dict[str, Path]:
    """A copy of a table, as a checkout of nnbuild has it beside the installed one, is the same board."""
    result: dict[str, Path] = {}
    for file in found:
        name = name_of(file)
        if name in result and result[name].read_bytes() == file.read_bytes():
            continue
        if name in result:
            cause = f"two tables have this name, {result[name]} and {file}."
            raise UsageError(f"board {name!r}", cause, "Give one of them another name.")
        result[name] = file
    return result


def is_file(board: str) -> bool:
    """Whether a board was named by its file."""
    return board.endswith(".toml")
