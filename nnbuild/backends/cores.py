"""The run-time of a board with several cores: which files of firmware/cores/ it is, and what they are told."""

from __future__ import annotations

from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board

CORES = FIRMWARE / "cores"
COMMON = ("nn_cores.c", "nn_cores_link.c")


def cores_sources(board: Board) -> list[Path]:
    """Nothing for a board that computes on one core."""
    runtime = board.cores.runtime
    if runtime is None:
        return []
    own = CORES / f"nn_cores_{runtime}.c"
    if not own.is_file():
        there = ", ".join(sorted(path.stem.removeprefix("nn_cores_") for path in CORES.glob("nn_cores_*.c")))
        cause = f"its [cores] runtime = {runtime!r} is none of those in firmware/cores/."
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {there}.")
    return [*(CORES / name for name in COMMON), own]


def cores_flags(board: Board) -> list[str]:
    if board.cores.runtime is None:
        return []
    return [f"-DNN_CORES={board.cores.count}", f"-DNN_CORES_BOUND={board.cores.bound}u"]
