"""The multicore run-time of a board: its files of firmware/cores/ and their settings."""

from __future__ import annotations

from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board
from nnbuild.board.cores import CoreTable

CORES = FIRMWARE / "cores"
COMMON = ("nn_cores.c", "nn_cores_link.c")


def cores_sources(board: Board) -> list[Path]:
    """The run-time's sources; none for a single core."""
    runtime = board.cores.runtime
    if runtime is None:
        return []
    own = CORES / f"nn_cores_{runtime}.c"
    if not own.is_file():
        there = ", ".join(sorted(path.stem.removeprefix("nn_cores_") for path in CORES.glob("nn_cores_*.c")))
        cause = f"its [cores] runtime = {runtime!r} is not in firmware/cores/."
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {there}.")
    return [*(CORES / name for name in COMMON), own, *_local_sources(board, runtime)]


def _local_sources(board: Board, runtime: str) -> list[Path]:
    if not board.cores.computes_locally:
        return []
    own = CORES / f"nn_local_{runtime}.c"
    if not own.is_file():
        cause = f"its run-time {runtime!r} does not support core-local memory: there is no {own.name}."
        raise UsageError(f"board {board.name!r}", cause, "Leave out --local.")
    return [CORES / "nn_local.c", own]


def cores_flags(board: Board) -> list[str]:
    if board.cores.runtime is None:
        return []
    return [f"-DNN_CORES={board.cores.count}", f"-DNN_CORES_BOUND={board.cores.bound}u", *_local_flags(board.cores)]


def _local_flags(cores: CoreTable) -> list[str]:
    if cores.local is None or not cores.computes_locally:
        return []
    checked = ["-DNN_LOCAL_CHECKED"] if cores.local.use == "checked" else []
    return [f"-DNN_LOCAL_ORIGIN={cores.local.origin:#x}u", f"-DNN_LOCAL_BYTES={cores.local.length}u", *checked]
