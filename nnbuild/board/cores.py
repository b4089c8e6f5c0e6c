"""What a board's table says of its cores: how many there are, and what it costs to let several compute one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnbuild.base.errors import UsageError


@dataclass(frozen=True)
class CoreTable:
    """count: how many there are. usual: how many compute where the user names no number. fork: cycles that a step
    takes longer when it is handed out and joined, `each` for every core. bound: milliseconds after which one that does
    not come back is given up, beyond several times what the first core took for its own part. runtime: which file of
    firmware/cores/ starts and wakes them."""

    count: int = 1
    usual: int = 1
    fork: int = 0
    each: int = 0
    bound: int = 1000
    runtime: str | None = None


MOST = 64
"""Cores that anything is planned for."""
LEAST = {"count": 1, "usual": 1, "fork": 0, "each": 0, "bound": 1}
"""The words of [cores] with numbers, and the least that each may be."""


def core_table(board: str, table: Mapping[str, Any]) -> CoreTable:
    """[cores] of a board; a board without it has one."""
    for key, value in table.items():
        if key not in (*LEAST, "runtime"):
            raise UsageError(f"board {board!r}", f"its [cores] has no {key}.", f"Write {', '.join(LEAST)}, runtime.")
        right = isinstance(value, str) if key == "runtime" else type(value) is int and value >= LEAST[key]
        if not right:
            kind = "the name of a file in firmware/cores/" if key == "runtime" else f"a number from {LEAST[key]}"
            raise UsageError(f"board {board!r}", f"its [cores] {key} = {value!r} cannot be.", f"Write {kind}.")
    cores = CoreTable(**{"usual": table.get("count", 1), **table})
    if cores.count > MOST:
        cause = f"its [cores] count = {cores.count}; steps are split over {MOST} at most."
        raise UsageError(f"board {board!r}", cause, f"Write at most {MOST}.")
    if cores.usual > cores.count:
        cause = f"its [cores] usual = {cores.usual}, of {cores.count} that there are."
        raise UsageError(f"board {board!r}", cause, "Write no more than count.")
    return cores


def chosen_cores(board: str, cores: CoreTable, asked: int | None) -> int:
    """How many compute: as many as were asked for, if there are so many."""
    if asked is None:
        return cores.usual
    if asked > cores.count:
        there = "computes on one core" if cores.count == 1 else f"has {cores.count} cores"
        step = "Leave --cores out for this board." if cores.count == 1 else f"Take at most {cores.count}."
        raise UsageError(f"--cores {asked}", f"{board} {there}.", step)
    return asked
