"""Finds the tables of boards: nnbuild's, those of installed packages, the user's project's, or a named file.

A table is NAME/board.toml or NAME.toml. A package offers its own through an entry point of the group `nnbuild.boards`,
whose value is a module; the tables lie in the module's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import BOARDS

GROUP = "nnbuild.boards"
PROJECT_FOLDER = "boards"
"""The folder of a project's own boards, beside its build."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Survey:
    """All tables found, by board name; and the files beside them that cannot be used, with the reason. These only
    matter to someone who asks for that board."""

    files: Mapping[str, Path]
    strays: tuple[tuple[Path, UsageError], ...]

    def refuse_stray(self, name: str) -> None:
        for stray, error in self.strays:
            if name == _called(stray):
                raise error


def name_of(file: Path) -> str:
    """A board's name is that of its file, and becomes part of file names and symbols."""
    name = _called(file)
    if not NAME.fullmatch(name):
        cause = "a board is named after its file, in letters, digits, '-' and '_'."
        raise UsageError(str(file), cause, "Give the file another name.")
    return name


def _called(file: Path) -> str:
    if file.name != "board.toml":
        return file.stem
    plain = file.parent.name and ".." not in file.parts and not file.is_symlink() and not file.parent.is_symlink()
    return file.parent.name if plain else file.resolve().parent.name


def in_folder(folder: Path) -> list[Path]:
    """The tables in a folder."""
    nested = sorted(folder.glob("*/board.toml"))
    plain = sorted(file for file in folder.glob("*.toml") if file.name != "board.toml")
    return [file for file in nested + plain if file.is_file()]


def siblings(file: Path) -> dict[str, Path]:
    """The tables beside this one, which it may extend."""
    return {_called(each): each for each in in_folder(file.parent) if NAME.fullmatch(_called(each))}


@cache
def of_packages() -> tuple[Path, ...]:
    """The folders that installed packages offer. Packages are not imported; a broken one offers none."""
    folders = []
    for point in entry_points(group=GROUP):
        found = find_spec(point.value)
        if found is not None and found.origin is not None:
            folders.append(Path(found.origin).parent)
    return tuple(sorted(folders))


def files() -> Mapping[str, Path]:
    """Every table found, by board name."""
    return survey().files


def survey() -> Survey:
    return by_name(file for folder in _folders() for file in in_folder(folder))


def _folders() -> list[Path]:
    own = Path(PROJECT_FOLDER)
    outside = [own] if own.is_dir() and own.resolve() != BOARDS.resolve() else []
    return [BOARDS, *of_packages(), *outside]


def by_name(found: Iterable[Path]) -> Survey:
    """Identical copies of a table, such as in a checkout beside an installed nnbuild, are the same board."""
    result: dict[str, Path] = {}
    strays: list[tuple[Path, UsageError]] = []
    for file in found:
        try:
            name = name_of(file)
            if name not in result:
                result[name] = file
            elif not is_copy(result[name], file):
                raise duplicate_name(name, result[name], file)
        except UsageError as error:
            strays.append((file, error))
    return Survey(result, tuple(strays))


def is_copy(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def duplicate_name(name: str, one: Path, other: Path) -> UsageError:
    cause = f"two tables have this name, {one} and {other}."
    return UsageError(f"board {name!r}", cause, "Give one of them another name.")


def is_ours(file: Path) -> bool:
    """Whether a table comes with nnbuild or an installed package rather than from the user."""
    parents = file.resolve().parents
    return any(folder.resolve() in parents for folder in (BOARDS, *of_packages()))


def refuse_taken_name(file: Path) -> None:
    """Refuses a user's table that has the name of an existing one."""
    name = name_of(file)
    for folder in (BOARDS, *of_packages()):
        for other in in_folder(folder):
            if _called(other) == name and other.resolve() != file.resolve() and not is_copy(other, file):
                raise duplicate_name(name, other, file)


def is_file(board: str) -> bool:
    """Whether a board was given as a file."""
    return board.endswith(".toml")
