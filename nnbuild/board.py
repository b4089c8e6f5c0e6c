"""Boards are tables: reads boards/<name>/board.toml."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnbuild.errors import UsageError
from nnbuild.paths import BOARDS


@dataclass(frozen=True)
class Board:
    """`features` are what kernels may need of the ISA; `table` is all that the file says."""

    name: str
    summary: str
    aliases: tuple[str, ...]
    tested_on: str
    output: str
    architecture: str
    features: frozenset[str]
    alignment: int
    compilers: tuple[str, ...]
    install: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    audit_policy: str
    stack_budget: int | None
    table: Mapping[str, Any]


def boards(folder: Path = BOARDS) -> tuple[Board, ...]:
    return tuple(_read(path.parent.name, folder) for path in sorted(folder.glob("*/board.toml")))


def find(name: str, folder: Path = BOARDS) -> Board:
    """The board of this name or alias."""
    known = boards(folder)
    for board in known:
        if name == board.name or name in board.aliases:
            return board
    names = [word for board in known for word in (board.name, *board.aliases)]
    near = difflib.get_close_matches(name, names, 3, 0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"board {name!r}", "there is no such board.", f"{hint}All boards: nnbuild boards")


def _read(name: str, folder: Path) -> Board:
    table = _whole_table(name, folder)
    try:
        toolchain, audit = table["toolchain"], table["audit"]
        return Board(
            name=name,
            summary=table["summary"],
            aliases=tuple(table.get("aliases", ())),
            tested_on=table["tested_on"],
            output=table["output"],
            architecture=table["architecture"],
            features=frozenset(table["features"]),
            alignment=table["alignment"],
            compilers=tuple(toolchain["compilers"]),
            install=toolchain["install"],
            flags=tuple(toolchain["flags"]),
            link_flags=tuple(toolchain["link_flags"]),
            audit_policy=audit["policy"],
            stack_budget=audit.get("stack"),
            table=table,
        )
    except KeyError as missing:
        raise UsageError(
            f"board {name!r}", f"its board.toml does not say {missing}.", "Compare it with boards/linux/board.toml."
        ) from None


def _whole_table(name: str, folder: Path) -> dict[str, Any]:
    """The board's own table over the one it extends; its own names and summary are never inherited."""
    try:
        own = tomllib.loads((folder / name / "board.toml").read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"board {name!r}", f"its board.toml is no TOML: {error}.", "Mend that line.") from None
    base = own.pop("extends", None)
    if base is None:
        return own
    inherited = _whole_table(base, folder)
    return _merged({k: v for k, v in inherited.items() if k not in ("aliases", "summary", "tested_on")}, own)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        result[key] = _merged(base[key], value) if both else value
    return result
