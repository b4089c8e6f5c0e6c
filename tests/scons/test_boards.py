"""Firmware through SCons: one command from the model to the verdict, and the images a flash tool takes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from nnbuild.backends.firmware.layout import flash_bytes
from nnbuild.jobs import pipeline
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from tests.scons.conftest import HEAD, ROOT, scons, write_model

MNIST = ROOT / "examples" / "mnist" / "mnist.h5"

pytestmark = pytest.mark.emulator


@pytest.fixture(autouse=True)
def needs_tools() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def test_from_the_model_to_the_verdict(checkout: Path) -> None:
    arguments = ("-Q", "board=stm32", "model=small.h5", "quantize=int8")
    said = scons(checkout, *arguments)
    assert said.status == 0, said.err
    assert re.search(r"PASS: \d+ samples", said.out)
    built = checkout / "build" / "stm32f405" / "small"
    assert json.loads((built / "audit.json").read_text())["clean"] is True
    report = json.loads((built / "check.json").read_text())
    assert (report["verdict"], report["unit"]) == ("pass", "instructions")
    assert (built / "program.bin").stat().st_size < 20_000
    assert (built / "program.hex").read_text().endswith(":00000001FF\n")
    again = scons(checkout, *arguments, "program")
    assert [step for step in again.steps if not step.startswith("nnbuild check")] == []


IMAGES = {".elf", ".bin", ".hex"}


@pytest.mark.turns(4)
def test_a_changed_model_makes_new_images(checkout: Path) -> None:
    arguments = ("-Q", "board=stm32f100", "model=small.h5", "program")
    assert scons(checkout, *arguments).status == 0
    image = checkout / "build" / "stm32f100" / "small" / "program.bin"
    before = image.read_bytes()
    write_model(checkout / "small.h5", 2.0)
    said = scons(checkout, *arguments)
    assert said.did("nnbuild image") == ["nnbuild image build/stm32f100/small/program.elf"]
    assert image.read_bytes() != before


@pytest.mark.turns(3)
def test_a_project_of_ones_own_in_folders(project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + "SConscript('device/SConscript', exports='env')\n")
    (project / "device").mkdir()
    (project / "device" / "SConscript").write_text(
        "Import('env')\n"
        "program = env.NNProgram('../small.h5', board='stm32')\n"
        "env.Alias('check', env.NNCheck('../small.h5', program, board='stm32'))\n"
    )
    said = scons(project, "-Q", "check")
    assert said.status == 0, said.out + said.err
    assert re.search(r"PASS: \d+ samples", said.out)


@pytest.mark.turns(4)
def test_a_budget_of_instructions(project: Path) -> None:
    """Proved on the linked program; below the bound the build fails, and says by how much."""
    for budget, status in ((100_000, 0), (20, 2)):
        line = f"env.NNProgram('small.h5', board='stm32', max_instructions={budget})\n"
        (project / "SConstruct").write_text(HEAD + line)
        said = scons(project, "-Q")
        assert said.status == status, said.out + said.err
        found = list(project.rglob("bound.json"))
        assert len(found) == (status == 0)
        assert {path.suffix for path in project.rglob("program.*") if path.suffix in IMAGES} == (
            set() if status else IMAGES
        )
    assert "more than the 20 allowed" in said.err
    (project / "SConstruct").write_text(HEAD + "env.NNProgram('small.h5', board='linux', max_instructions=5)\n")
    said = scons(project, "-Q")
    assert said.status == 2 and "nnbuild: board 'linux': a bound on instructions is proved only" in said.err
    assert not said.steps


def test_a_kernel_for_a_program_without_one(project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + "env.NNProgram('small.h5', board='stm32', kdir='/nope')\n")
    said = scons(project, "-Q")
    assert said.status == 2 and "nnbuild: board 'stm32f405': its build does not take the choice of a kdir." in said.err


@pytest.mark.turns(4)
def test_the_linker_finds_a_memory_full(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was known before compiling let this pass: the whole of the code is known to the linker alone."""
    shutil.copy2(MNIST, checkout)
    monkeypatch.setattr(pipeline, "flash_room", lambda board, plan: 0)  # the smallest kernels, as a full flash has them
    length = flash_bytes(compile_model(Options(MNIST, "stm32")).plan) + 100
    table = checkout / "boards" / "stm32f405" / "board.toml"
    table.write_text(table.read_text().replace("length = 1_048_576", f"length = {length}"))
    said = scons(checkout, "-Q", "board=stm32", "model=mnist.h5", "program")
    assert said.status != 0
    found = re.search(
        r"^nnbuild: program: the program is ([\d,]+) bytes larger than the memory 'flash'", said.err, re.M
    )
    assert found is not None, said.err
    assert f"overflowed by {found[1].replace(',', '')} bytes" in said.err, "the linker's own words are there, too"


@pytest.mark.turns(4)
def test_the_rate_of_the_line(checkout: Path) -> None:
    arguments = ("-Q", "board=stm32", "model=small.h5", "program")
    assert scons(checkout, *arguments).status == 0
    said = scons(checkout, *arguments, "baud=921600")
    assert said.status == 0, said.err
    assert said.did("arm-none-eabi-gcc build/stm32f405/small/program"), "another rate is another program"
    said = scons(checkout, *arguments, "baud=fast")
    assert said.status == 2
    assert "nnbuild: baud=fast: it is not a positive whole number. Give the rate of the serial line" in said.err
    said = scons(checkout, "-Q", "board=rv32", "model=small.h5", "program", "baud=921600")
    assert said.status == 2
    assert "its serial port runs at 230,400 baud instead of 921,600" in said.err


@pytest.mark.turns(3)
def test_a_model_that_does_not_fit(checkout: Path) -> None:
    table = checkout / "boards" / "stm32f100" / "board.toml"
    table.write_text(table.read_text().replace("length = 8_192", "length = 3_072"))
    said = scons(checkout, "-Q", "board=stm32f100", "model=small.h5")
    assert said.status == 2
    assert "the model exceeds the RAM by" in said.err
    assert not said.did("arm-none-eabi-gcc")
