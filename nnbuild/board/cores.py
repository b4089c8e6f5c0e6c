"""Reads [cores] of a board's table: how many there are, and what splitting a step costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nnbuild.base.errors import UsageError

USES = ("off", "on", "checked")
"""Whether programs compute in core-local memories, and whether a core that touches anything else faults."""


@dataclass(frozen=True)
class LocalTable:
    """[cores.local]: local memory of each core. The first one's begins at `origin`, each further one `length` bytes
    later. copy: cycles per byte copied. use: whether programs compute there by default."""

    origin: int
    length: int
    copy: float = 1
    use: str = "off"


@dataclass(frozen=True)
class CoreKind:
    """[[cores.kinds]]: one entry per core, in order, where they differ. cpu: flags of each toolchain, as in [cpu].
    speed: relative to the fastest core."""

    isa: str
    features: frozenset[str] = frozenset()
    cpu: Mapping[str, Any] = field(default_factory=dict)
    speed: float = 1


@dataclass(frozen=True)
class CoreTable:
    """count: number of cores. usual: how many compute by default. fork: cycles for splitting and joining a step, plus
    `each` for every core. bound: milliseconds after which a core that does not return is given up, in addition to
    several times what the first core took for its own part. runtime: the file of firmware/cores/ that starts and wakes
    the cores."""

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
"""Most cores that a plan supports."""
MINIMUMS = {"count": 1, "usual": 1, "fork": 0, "each": 0, "bound": 1}
"""Numeric keys of [cores], and their minimums."""


def core_table(board: str, table: Mapping[str, Any]) -> CoreTable:
    """Reads [cores]; a board without it has one core."""
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
            raise UsageError(f"board {board!r}", f"its [cores] {key} = {value!r} is not valid.", f"Write {kind}.")
    cores = CoreTable(**{"usual": table.get("count", 1), **table}, local=local, kinds=kinds)
    if cores.count > MAX_CORES:
        cause = f"its [cores] count = {cores.count}; steps are split over {MAX_CORES} at most."
        raise UsageError(f"board {board!r}", cause, f"Write at most {MAX_CORES}.")
    if cores.usual > cores.count:
        cause = f"its [cores] usual = {cores.usual}, but count = {cores.count}."
        raise UsageError(f"board {board!r}", cause, "Write no more than count.")
    if kinds and len(kinds) != cores.count:
        cause = f"it has {len(kinds)} [[cores.kinds]], but count = {cores.count}."
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
            raise UsageError(f"board {board!r}", f"its [cores.local] {key} = {value!r} is not valid.", step)
    missing = [key for key in ("origin", "length") if key not in table]
    if missing or table["length"] % 64 or table["origin"] % 64:
        cause = (
            f"its [cores.local] has no {missing[0]}." if missing else "its [cores.local] is not aligned to 64 bytes."
        )
        raise UsageError(f"board {board!r}", cause, "Write origin and length as multiples of 64.")
    return LocalTable(**table)


def with_local(board: str, cores: CoreTable, use: str | None) -> CoreTable:
    """The table with the requested use of core-local memories."""
    if use is None:
        return cores
    if cores.local is None:
        if use == "off":
            return cores
        cause = f"the table of {board} has no core-local memory."
        raise UsageError(f"--local {use}", cause, "Leave it out, or give the table a [cores.local].")
    return replace(cores, local=replace(cores.local, use=use))


def chosen_cores(board: str, cores: CoreTable, asked: int | None) -> int:
    """How many cores compute: as many as requested, if there are enough."""
    if asked is None:
        return cores.usual
    if asked > cores.count:
        there = "computes on one core" if cores.count == 1 else f"has {cores.count} cores"
        step = "Leave --cores out for this board." if cores.count == 1 else f"Take at most {cores.count}."
        raise UsageError(f"--cores {asked}", f"{board} {there}.", step)
    return asked
