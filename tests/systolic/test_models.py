"""Whole models on the accelerator through the real command, on this PC and on a Cortex-M4: every output as the
reference has it, and what the device's counters say of the plan."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.running import EXAMPLE, NNBUILD, ROOT, start, well
from tests.systolic.simulated import needs_verilator

SHARED = ROOT.parent / "shared" / "models"
MNIST = (EXAMPLE / "mnist.h5", "--quantize", "int8", "--calibrate", EXAMPLE / "calibration.npz")
PLAIN = ("--device", "systolic", "--isa", "c99")


def samples(folder: Path, source: Path, count: int) -> Path:
    few = folder / "few.npz"
    with np.load(source) as whole:
        np.savez(few, x=whole["x"][:count])
    return few


def counted(file: Path) -> dict[str, int]:
    words = (line.split() for line in file.read_text().splitlines())
    return {name: int(number) for name, number in words}


def estimated(said: str) -> int:
    found = re.search(r"in about ([\d,]+) of its cycles", said)
    assert found, said
    return int(found[1].replace(",", ""))


def right(said: str) -> None:
    """Not one integer is another than the reference's."""
    assert re.findall(r"(\d+) of \d+ integers differ", said) == ["0"], said


def check(folder: Path, *words: object) -> tuple[str, dict[str, int]]:
    file = folder / "counters"
    said = well(*NNBUILD, "check", *words, env={"NN_SYSTOLIC_COUNTERS": str(file)})
    right(said)
    return said, counted(file)


@needs_verilator
@pytest.mark.slow
def test_the_example_on_this_pc(tmp_path: Path) -> None:
    said, counters = check(tmp_path, *MNIST, "--inputs", samples(tmp_path, EXAMPLE / "samples.npz", 3), *PLAIN)
    runs = round(counters["span"] / estimated(said))
    assert runs > 0
    assert abs(counters["span"] / runs / estimated(said) - 1) <= 0.1
    assert counters["idle"] <= 0.1 * counters["span"]


@pytest.mark.turns(3)
@needs_verilator
@pytest.mark.slow
@pytest.mark.emulator
def test_the_example_on_a_cortex_m4(tmp_path: Path) -> None:
    few = samples(tmp_path, EXAMPLE / "samples.npz", 2)
    said, counters = check(tmp_path, *MNIST, "--inputs", few, "--device", "systolic", "--board", "stm32f405")
    assert counters["array"] > 0
    assert "device" in said


FAULTS = {
    "hang": "1 900",
    "lost interrupt": "2",
    "spurious interrupt": "3 5000 0 40",
    "descriptor": "4 20 0 5",
    "constants": "5 100 0 9",
    "bad status": "6 10 12 255",
    "wrong order": "8 40 20 3",
}
"""Kind, after how many events, which register, which bits."""


@pytest.mark.turns(3)
@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize("names", [("hang", "wrong order"), pytest.param(tuple(FAULTS), marks=pytest.mark.full)])
def test_what_fails_is_computed_by_the_processor(names: tuple[str, ...], tmp_path: Path) -> None:
    few = samples(tmp_path, EXAMPLE / "samples.npz", 2)
    well(*NNBUILD, "build", *MNIST, *PLAIN, "-o", tmp_path / "built")
    program = ("--program", tmp_path / "built" / "program", "--inputs", few)
    for name in names:
        said = well(*NNBUILD, "check", *MNIST, *program, *PLAIN, env={"NN_SYSTOLIC_FAULT": FAULTS[name]})
        right(said)
        assert ("steps instead" in said) == ("interrupt" not in name), name


@needs_verilator
@pytest.mark.full
@pytest.mark.parametrize("board", ["linux", "stm32f405"])
@pytest.mark.parametrize("model", ["pretrainedResnet", "kws_ref_model"])
def test_networks_that_are_usual(model: str, board: str, tmp_path: Path) -> None:
    """ResNet8 and a network for spoken words: the array's use, and how long nothing was under way."""
    golden = SHARED / f"{model}_golden.npz"
    if not golden.is_file():
        pytest.skip(f"needs ../shared/models/{golden.name}")
    own = (SHARED / f"{model}.h5", "--quantize", "int8", "--calibrate", golden, "--device", "systolic")
    own += ("--isa", "c99") if board == "linux" else ("--board", board)
    said, counters = check(tmp_path, *own, "--inputs", samples(tmp_path, golden, 4))
    if board == "linux":
        runs = round(counters["span"] / estimated(said))
        assert abs(counters["span"] / runs / estimated(said) - 1) <= 0.1
        assert counters["idle"] <= 0.1 * counters["span"]
        if model == "pretrainedResnet":
            steps = re.findall(r"^\S+ +(?:conv2d|dense) +device +([\d,]+)", said, re.MULTILINE)
            macs = sum(int(each.replace(",", "")) for each in steps)
            assert macs / 64 * runs >= 0.7 * counters["span"]


@needs_verilator
@pytest.mark.slow
def test_without_its_compiler_the_simulator_is_missed_by_name(tmp_path: Path) -> None:
    done = start(
        *(*NNBUILD, "build", *MNIST, *PLAIN, "-o", tmp_path / "made"),
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"},
    )
    assert done.status == 3
    assert "device 'systolic': its simulator is made by verilator, which is not installed." in done.text
