"""Firmware through SCons: one command from the model to the verdict, and the images a flash tool takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.scons.conftest import HEAD, scons, write_model

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
    assert "PASS: 16 samples" in said.out
    built = checkout / "build" / "stm32f405" / "small"
    assert json.loads((built / "audit.json").read_text())["clean"] is True
    report = json.loads((built / "check.json").read_text())
    assert (report["verdict"], report["unit"]) == ("pass", "instructions")
    assert (built / "program.bin").stat().st_size < 20_000
    assert (built / "program.hex").read_text().endswith(":00000001FF\n")
    again = scons(checkout, *arguments, "program")
    assert [step for step in again.steps if not step.startswith("nnbuild check")] == []


def test_a_changed_model_makes_new_images(checkout: Path) -> None:
    arguments = ("-Q", "board=stm32f100", "model=small.h5", "program")
    assert scons(checkout, *arguments).status == 0
    image = checkout / "build" / "stm32f100" / "small" / "program.bin"
    before = image.read_bytes()
    write_model(checkout / "small.h5", 2.0)
    said = scons(checkout, *arguments)
    assert said.did("nnbuild image") == ["nnbuild image build/stm32f100/small/program.elf"]
    assert image.read_bytes() != before


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
    assert "PASS: 16 samples" in said.out


def test_a_model_that_does_not_fit(checkout: Path) -> None:
    table = checkout / "boards" / "stm32f100" / "board.toml"
    table.write_text(table.read_text().replace("length = 8_192", "length = 3_072"))
    said = scons(checkout, "-Q", "board=stm32f100", "model=small.h5")
    assert said.status == 2
    assert "bytes of RAM more than there are" in said.err
    assert not said.did("arm-none-eabi-gcc")
