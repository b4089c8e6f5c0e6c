"""Boards of several cores in their emulators: the same bits, and every core's instructions counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nnbuild.device.check import Gates
from nnbuild.jobs.job import check_job, place, profile_job, samples_for
from nnbuild.jobs.pipeline import Options, compile_model

pytestmark = pytest.mark.emulator

MNIST = Path(__file__).parents[2] / "examples" / "mnist"
EMULATORS = {"rv32-smp": ("qemu-system-riscv32", 8), "mps2-an521": ("qemu-system-arm", 2)}


@pytest.mark.parametrize("board", EMULATORS)
def test_all_cores_compute_the_same_sooner(board: str) -> None:
    emulator, cores = EMULATORS[board]
    if shutil.which(emulator) is None:
        pytest.skip(f"{emulator} is not installed")
    costs = {}
    for count in (1, cores):
        compiled = compile_model(
            Options(MNIST / "mnist.h5", board, "int8", calibrate=MNIST / "calibration.npz", threads=count)
        )
        with place(None) as where:
            assert check_job(compiled, samples_for(compiled, None), where, Gates()).passed
            profile = profile_job(compiled, where)
        assert profile.duration.min == profile.duration.max, "the same in every run"
        costs[count] = profile.total
    assert costs[1] / costs[cores] > 0.75 * cores
