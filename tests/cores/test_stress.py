"""Threads that are held up, that end and that hang wherever they meet: the same bits, or an error in time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from nnbuild.base.paths import FIRMWARE
from nnbuild.emit.emit import emit
from nnbuild.plan.cores import Cores
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.quantized import quantized

pytestmark = pytest.mark.slow

HERE, CORES = Path(__file__).parent, FIRMWARE / "cores"
BOUND = 500
"""Milliseconds; a machine with much to do holds a thread up for some hundreds."""


def program(folder: Path, *flags: str) -> Path:
    plan = make_plan(quantized(dict(cases())["conv2d-0"](), "int8", seed=3), "net", Target(cores=Cores(3, 0)))
    assert max(step.parts for step in plan.steps) == 3
    emit(plan, "array").write(folder)
    sources = [*folder.glob("*.c"), HERE / "stress.c", CORES / "nn_cores.c", CORES / "nn_cores_posix.c"]
    told = ["-include", str(HERE / "points.h"), f"-DNN_CORES_BOUND={BOUND}u"]
    command = ["gcc", "-O1", "-g", "-pthread", *flags, *told, f"-I{folder}", f"-I{HERE}", f"-I{CORES}"]
    subprocess.run([*command, *map(str, sources), "-o", str(folder / "stress")], check=True)
    return folder / "stress"


def said(built: Path, *words: str) -> str:
    done = subprocess.run([built, *words], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_delays_where_threads_meet_change_nothing(tmp_path: Path) -> None:
    assert said(program(tmp_path), "delays", "1000", "7") == "1000 runs, 0 differ\n"


@pytest.mark.slow
def test_no_two_threads_at_one_byte(tmp_path: Path) -> None:
    assert said(program(tmp_path, "-fsanitize=thread"), "delays", "200", "3") == "200 runs, 0 differ\n"


def test_a_thread_that_is_lost_is_an_error_in_time(tmp_path: Path) -> None:
    _in_time(said(program(tmp_path), "kills", "5", "11"), 5)


@pytest.mark.full
def test_delays_many_times(tmp_path: Path) -> None:
    assert said(program(tmp_path), "delays", "100000", "1") == "100000 runs, 0 differ\n"


@pytest.mark.full
def test_a_thousand_lost_threads(tmp_path: Path) -> None:
    _in_time(said(program(tmp_path), "kills", "1000", "1"), 1000)


def _in_time(text: str, kills: int) -> None:
    found = re.fullmatch(rf"{kills} kills, 0 unharmed, an error after ([0-9.]+) s at most\n", text)
    assert found, text
