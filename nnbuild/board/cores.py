"""What a board's table says of its cores: how many there are, and what it costs to let several compute one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nnbuild.base.errors import UsageError

USES = ("off", "on", "checked")
"""Whether a program computes in cores' own memories, and whether a core that touches anything else takes a fault."""


@dataclass(frozen=True)
class LocalTable:
    """[cores.local]: memory that each core has of its own. The first one's begins at `origin`, each of the others
    `length` bytes behind the one before it. copy: cycles that a core takes to copy a byte. use: whether programs
    compute there where the user does not say."""

    origin: int
    length: int
    copy: float = 1
    use: str = "off"


@dataclass(frozen=True)
class CoreKind:
    """[[cores.kinds]]: what one core has, where they differ; one for each, in their order. cpu: how toolchains call it,
    as in [cpu]. speed: how much it does while the fastest does 1."""

    isa: str
    features: frozenset[str] = frozenset()
    cpu: Mapping[str, Any] = field(default_factory=dict)
    speed: float = 1


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
    local: LocalTable | None = None
    kinds: tuple[CoreKind, ...] = ()

    @property
    def computes_locally(self) -> bool:
        return self.local is not None and self.local.use != "off"


MAX_CORES = 64
"""Cores that anything is planned for."""
MINIMUMS = {"count": 1, "usual": 1, "fork": 0, "each": 0, "bound": 1}
"""The words of [cores] with numbers, and the least that each may be."""


def core_table(board: str, table: Mapping[str, Any]) -> CoreTable:
    """[cores] of a board; a board without it has one."""
    local = _local_table(board, table["local"]) if "local" in table else None
    kinds = tuple(_kind(board, each) for each in table.get("kinds", ()))
    table = {key: value for key, value in table.items() if key not in ("local", "kinds")}
    for key, value in table.items():
        if key not in (*MINIMUMS, "runtime"):
            names = ", ".join((*MINIMUMS, "runtime", "local", "kinds"))
            raise UsageError(f"board {board!r}", f"its [cores] has no {key}.", f"Write {names}.")
        right = isinstance(value, str) if key == "runtime" else type(value) is int and value >= MINIMUMS[key]
        if not right:
            kind = "the name of a file in firmware/cores/" if key == "runtime" else f"a number from {MINIMUMS[key]}"
            raise UsageError(f"board {board!r}", f"its [cores] {key} = {value!r} cannot be.", f"Write {kind}.")
    cores = CoreTable(**{"usual": table.get("count", 1), **table}, local=local, kinds=kinds)
    if cores.count > MAX_CORES:
        cause = f"its [cores] count = {cores.count}; steps are split over {MAX_CORES} at most."
        raise UsageError(f"board {board!r}", cause, f"Write at most {MAX_CORES}.")
    if cores.usual > cores.count:
        cause = f"its [cores] usual = {cores.usual}, of {cores.count} that there are."
        raise UsageError(f"board {board!r}", cause, "Write no more than count.")
    if kinds and len(kinds) != cores.count:
        cause = f"it has {len(kinds)} [[cores.kinds]], and count = {cores.count}."
        raise UsageError(f"board {board!r}", cause, "Write one for each core, or none where all are alike.")
    return cores


def _kind(board: str, table: Mapping[str, Any]) -> CoreKind:
    if "isa" not in table:
        raise UsageError(f"board {board!r}", "one of its [[cores.kinds]] has no isa.", "Write its instruction set.")
    return CoreKind(table["isa"], frozenset(table.get("features", ())), table.get("cpu", {}), table.get("speed", 1))


def _local_table(board: str, table: Mapping[str, Any]) -> LocalTable:
    kinds = {"origin": (int,), "length": (int,), "copy": (int, float), "use": (str,)}
    for key, value in table.items():
        if key not in kinds:
            cause = f"its [cores.local] has no {key}."
            raise UsageError(f"board {board!r}", cause, f"Write {', '.join(kinds)}.")
        if type(value) not in kinds[key] or (key == "use" and value not in USES) or (key != "use" and value < 0):
            step = f"Write one of {', '.join(USES)}." if key == "use" else "Write a number from 0."
            raise UsageError(f"board {board!r}", f"its [cores.local] {key} = {value!r} cannot be.", step)
    missing = [key for key in ("origin", "length") if key not in table]
    if missing or table["length"] % 64 or table["origin"] % 64:
        cause = (
            f"its [cores.local] has no {missing[0]}." if missing else "its [cores.local] is not on lines of 64 bytes."
        )
        raise UsageError(f"board {board!r}", cause, "Write origin and length as multiples of 64.")
    return LocalTable(**table)


def with_local(board: str, cores: CoreTable, use: str | None) -> CoreTable:
    """With the use of cores' own memories that is asked for."""
    if use is None:
        return cores
    if cores.local is None:
        if use == "off":
            return cores
        cause = f"the table of {board} names no memory of each core's own."
        raise UsageError(f"--local {use}", cause, "Leave it out, or give the table a [cores.local].")
    return replace(cores, local=replace(cores.local, use=use))


def chosen_cores(board: str, cores: CoreTable, asked: int | None) -> int:
    """How many compute: as many as were asked for, if there are so many."""
    if asked is None:
        return cores.usual
    if asked > cores.count:
        there = "computes on one core" if cores.count == 1 else f"has {cores.count} cores"
        step = "Leave --cores out for this board." if cores.count == 1 else f"Take at most {cores.count}."
        raise UsageError(f"--cores {asked}", f"{board} {there}.", step)
    return asked
