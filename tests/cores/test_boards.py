"""Boards of several cores in their emulators: the same bits, and every core's instructions counted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.board.cores import core_table
from nnbuild.board.tables import find
from nnbuild.device.gates import Gates
from nnbuild.jobs.cores import cores_of, for_cores
from nnbuild.jobs.job import check_job, place, profile_job, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model

pytestmark = pytest.mark.emulator

MNIST = Path(__file__).parents[2] / "examples" / "mnist"
EMULATORS = {
    "rv32-smp": ("qemu-system-riscv32", 8),
    "mps2-an521": ("qemu-system-arm", 2),
    "mps2-an521-mixed": ("qemu-system-arm", 2),
}


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    "board", [pytest.param(name, marks=[pytest.mark.full] * (name == "mps2-an521")) for name in EMULATORS]
)
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


Kind = dict[str, object]
SLOW: Kind = {"isa": "armv7m", "speed": 0.5}
FAST: Kind = {"isa": "armv7em_dsp", "features": ["arm_fpu"], "cpu": {"gcc": ["-mcpu=cortex-m33"]}}
OTHER: Kind = {"isa": "armv7m", "features": ["another"]}


def board_with(*kinds: Kind) -> Board:
    cores = core_table("mine", {"count": len(kinds), "kinds": kinds})
    return replace(find("mps2-an521"), name="mine", cores=cores)


def test_a_program_is_made_for_what_all_cores_have() -> None:
    both = for_cores(board_with(FAST, SLOW), None)
    assert (both.isa, both.features, cores_of(both, None).speeds) == ("armv7m", frozenset(), (1, 0.5))
    alone = for_cores(board_with(FAST, SLOW), 1)
    assert (alone.isa, alone.features) == ("armv7em_dsp", frozenset({"arm_fpu"}))
    assert alone.toolchains[0].flags[-1] == "-mcpu=cortex-m33"


def test_cores_of_which_none_has_what_all_have() -> None:
    with pytest.raises(UsageError) as caught:
        for_cores(board_with(FAST, OTHER), 2)
    assert str(caught.value).startswith(
        "board 'mine': each of its first 2 cores has a feature that another of them lacks."
    )
