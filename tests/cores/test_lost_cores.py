"""Cores of emulated boards that hang or take a fault wherever they meet: an error in time, and the next start works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.lost_cores import Stop, lose, program

pytestmark = pytest.mark.emulator

EMULATORS = {"rv32-smp": "qemu-system-riscv32", "mps2-an521": "qemu-system-arm"}


@pytest.mark.parametrize(
    ("board", "first", "seed"), [("rv32-smp", Stop(3, 9, False), 6), ("mps2-an521", Stop(1, 11, True), 2)]
)
def test_cores_that_are_lost_are_named_and_come_back(board: str, first: Stop, seed: int, tmp_path: Path) -> None:
    _named(board, first, 4, seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("board", "count"), [("rv32-smp", 100), ("mps2-an521", 50)])
def test_cores_lost_at_random_points(board: str, count: int, tmp_path: Path) -> None:
    _named(board, Stop(1, 4, False), count, 7, tmp_path)


def _named(board: str, first: Stop, count: int, seed: int, folder: Path) -> None:
    if shutil.which(EMULATORS[board]) is None:
        pytest.skip("its emulator is not installed")
    for stop, said in lose(program(board, folder), first, count, seed):
        assert stop.explains(said), (stop, said)
