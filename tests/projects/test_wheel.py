"""The wheel and nothing else: a new project is built and checked by the very lines that its README prints."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.projects.conftest import Installed
from tests.scons.conftest import write_model
from tests.support.running import NNBUILD, ROOT, files_of, printed, start, well

pytestmark = pytest.mark.projects


def steps(readme: Path) -> list[str]:
    """The commands that a README prints, one a line."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def follow(installed: Installed, folder: Path) -> str:
    assert len((folder / "README.md").read_text().splitlines()) <= 40
    return "".join(installed.well(line, folder) for line in steps(folder / "README.md"))


def test_what_is_in_it(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kinds = ("boards/**/*.toml", "devices/**/*.*", "firmware/**/*.[chS]", "docs/*.md", "examples/mnist/*.[hn]*")
    inside = ("nnbuild/**/*.toml", "nnbuild/templates/**/*", "nnbuild/builds/**/*", "nnbuild/**/*.py")
    for pattern in (*kinds, *inside):
        found = [path for path in ROOT.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        there = {path.relative_to(ROOT).as_posix() for path in found}
        assert len(there) > 2, pattern
        lacking = {name if name.startswith("nnbuild/") else f"nnbuild/{name}" for name in there} - names
        assert not lacking, f"{pattern}: {sorted(lacking)[:9]}"
    for name in (
        "py.typed",
        "builds/cmake/nnbuildConfig.cmake",
        "builds/platformio/nnbuild_platformio.py",
        "templates/rust/lib.rs",
    ):
        assert f"nnbuild/{name}" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


@pytest.mark.turns(4)
def test_what_it_brings_is_found_by_its_commands(installed: Installed, tmp_path: Path) -> None:
    """Tables of boards and parts, devices, pages, templates: all of the wheel's own, in a folder with nothing else."""
    assert installed.well("nnbuild --version", tmp_path).startswith("nnbuild ")
    assert "nucleo-f446re" in installed.well("nnbuild boards", tmp_path)
    installed.well("nnbuild board new mine --like nucleo-g474re && nnbuild board check mine", tmp_path)
    assert "no contradictions" in installed.well("nnbuild board check pico2 esp32c3-devkitm", tmp_path)
    assert "# Boards" in installed.well("nnbuild docs boards", tmp_path)
    installed.well("nnbuild new digits --board linux && cd digits", tmp_path)
    for kind in ("zephyr", "espidf", "rust", "cmsis-pack", "arduino", "meson", "bazel", "cubeide"):
        installed.well(f"nnbuild compile digits/mnist.h5 --output {kind} -o out/{kind}", tmp_path)


def test_few_packages_come_with_it(installed: Installed, tmp_path: Path) -> None:
    pip = f"{sys.executable} -m pip --python {installed.folder}/bin/python --disable-pip-version-check"
    listed = installed.well(f"{pip} list --format=freeze", tmp_path)
    names = {line.split("==")[0].lower() for line in listed.splitlines()}
    assert names == {"nnbuild", "numpy", "scons", "pyserial", "pyelftools", "capstone"}


@pytest.mark.turns(4)
@pytest.mark.parametrize("build", ["scons", pytest.param("cmake", marks=pytest.mark.full)])
def test_a_new_project_for_this_pc(installed: Installed, build: str, tmp_path: Path) -> None:
    if build == "cmake" and shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    installed.well(f"nnbuild new digits --board linux --build {build}", tmp_path)
    text = follow(installed, tmp_path / "digits")
    assert "PASS: 200 samples" in text
    assert "It is: eight" in text


@pytest.mark.turns(2)
@pytest.mark.emulator
@pytest.mark.parametrize("build", ["scons", pytest.param("cmake", marks=pytest.mark.full)])
def test_a_new_project_for_a_microcontroller(installed: Installed, build: str, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    installed.well(f"nnbuild new digits --board stm32 --build {build}", tmp_path)
    assert "PASS: 200 samples" in follow(installed, tmp_path / "digits")


@pytest.mark.turns(4)
@pytest.mark.parametrize("build", [pytest.param("scons", marks=pytest.mark.full), "cmake"])
def test_a_new_project_for_a_board_that_no_emulator_has(installed: Installed, build: str, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    installed.well(f"nnbuild new digits --board nucleo-f446re --build {build}", tmp_path)
    follow(installed, tmp_path / "digits")
    assert list((tmp_path / "digits").rglob("program.hex"))


@pytest.mark.turns(4)
def test_a_new_project_around_a_model_of_ones_own(installed: Installed, tmp_path: Path) -> None:
    """In a folder with blanks and other letters, with a model from elsewhere."""
    write_model(tmp_path / "small.h5")
    np.savez(tmp_path / "mine.npz", x=np.ones((3, 4), np.float32))
    installed.well("nnbuild new 'mon projet é' --model small.h5 --inputs mine.npz", tmp_path)
    text = follow(installed, tmp_path / "mon projet é")
    assert "PASS: 3 samples" in text
    assert "The largest is output" in text


@pytest.mark.turns(3)
def test_the_same_wheel_prints_the_same_c(installed: Installed, tmp_path: Path) -> None:
    """From the command line and SCons, and as the checkout does."""
    installed.well("nnbuild new digits", tmp_path)
    project = tmp_path / "digits"
    installed.well("scons build/linux/mnist/mnist.c", project)
    options = "mnist.h5 --quantize int8 --calibrate calibration.npz --labels labels.txt"
    installed.well(f"nnbuild compile {options} -o apart", project)
    by_scons = printed(project / "build" / "linux" / "mnist", "mnist")
    assert by_scons == printed(project / "apart", "mnist")
    well(*NNBUILD, "compile", *options.split(), "-o", tmp_path / "here", folder=project)
    assert by_scons == printed(tmp_path / "here", "mnist")


def test_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "mine").write_text("mine")
    done = start(*NNBUILD, "new", "digits", folder=tmp_path)
    assert (done.status, done.text) == (
        2,
        "nnbuild: digits: it already exists and is not an empty folder. Name a new folder.\n",
    )
    assert list(files_of(tmp_path / "digits")) == ["mine"]


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--board", "stm23"], "nnbuild: board 'stm23': there is no such board. Did you mean"),
        (["--model", "absent.h5"], "nnbuild: absent.h5: there is no such file. Check its name."),
        (["--inputs", "x.npz"], "nnbuild: --inputs: this needs your own model. Give the model with --model."),
        (
            ["--board", "rv32", "--build", "platformio"],
            "nnbuild: board 'rv32': nnbuild does not know PlatformIO's name",
        ),
    ],
)
def test_what_is_refused(options: list[str], text: str, tmp_path: Path) -> None:
    done = start(*NNBUILD, "new", "digits", *options, folder=tmp_path)
    assert (done.status, done.text.startswith(text)) == (2, True), done.text
    assert not (tmp_path / "digits").exists()
