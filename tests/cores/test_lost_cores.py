"""Cores of emulated boards that hang or take a fault wherever they meet: an error in time, and the next start works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nnbuild.device.errors import DeviceFault
from nnbuild.device.session import open_model
from tests.support.lost_cores import Stop, computed, losing, program, stopping

pytestmark = pytest.mark.emulator

EMULATORS = {"rv32-smp": "qemu-system-riscv32", "mps2-an521": "qemu-system-arm"}


@pytest.mark.turns(2)
@pytest.mark.parametrize(("board", "stop"), [("rv32-smp", Stop(3, 9, False)), ("mps2-an521", Stop(1, 11, True))])
def test_the_link_names_a_core_that_is_lost(board: str, stop: Stop, tmp_path: Path) -> None:
    _installed(board)
    made = program(board, tmp_path)
    with stopping(made, stop) as link:
        model = open_model(link)
        with pytest.raises(DeviceFault, match=stop.told):
            for _ in range(20):
                assert computed(link, model, made.sample) == made.wanted
        link.init()
        assert computed(link, model, made.sample) == made.wanted


@pytest.mark.parametrize(
    ("board", "losses"), [("rv32-smp", 6), *(pytest.param(board, 250, marks=pytest.mark.full) for board in EMULATORS)]
)
def test_cores_are_lost_at_random_points(board: str, losses: int, tmp_path: Path) -> None:
    _installed(board)
    said = losing(board, losses, 1, tmp_path)
    assert said.startswith(f"{losses} lost, 0 never, 0 not named, 0 wrong after the next start"), said


def _installed(board: str) -> None:
    if shutil.which(EMULATORS[board]) is None:
        pytest.skip("its emulator is not installed")
