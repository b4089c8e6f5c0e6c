"""The files of new projects, for every board and every build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.tables import boards, find
from nnbuild.jobs.project import BUILDS, Parts, project_files
from tests.scons.conftest import write_model
from tests.support.running import ROOT, start

pytestmark = pytest.mark.slow

LISTS = {"scons": "SConstruct", "cmake": "CMakeLists.txt", "platformio": "platformio.ini"}


@pytest.mark.turns(6)
@pytest.mark.parametrize(
    ("build", "board"),
    [
        pytest.param(build, board.name, marks=() if (at + place) % len(BUILDS) == 0 else pytest.mark.full)
        for place, board in enumerate(boards())
        for at, build in enumerate(BUILDS)
    ],
)
def test_a_project_explains_itself_on_one_page(build: str, board: str) -> None:
    try:
        files = project_files(build, Parts(board))
    except UsageError as refused:
        assert build == "platformio" or "the model exceeds the " in refused.cause, refused
        return
    assert {LISTS[build], "README.md", "mnist.h5", "samples.npz", "calibration.npz"} <= files.keys()
    readme = files["README.md"].decode()
    assert len(readme.splitlines()) <= 40
    assert "```sh" in readme
    assert ("in the emulator" in readme) == (
        build != "platformio" and find(board).emulator is not None and find(board).output == "firmware"
    )
    for name, content in files.items():
        if not name.endswith((".h5", ".npz")):
            assert "@" not in content.decode(), name


def test_the_check_of_a_board_that_no_emulator_has_needs_a_port() -> None:
    """PlatformIO's program is not the check's, which is flashed before it is asked."""
    lines = project_files("platformio", Parts("nucleo-f446re"))["README.md"].decode().splitlines()
    flash, check = (line for line in lines if line.startswith("nnbuild "))
    assert flash.startswith("nnbuild flash mnist.h5 --board nucleo-f446re --quantize int8 ")
    assert check.startswith("nnbuild check mnist.h5 --board nucleo-f446re --quantize int8 ")
    assert flash.endswith(" --port /dev/ttyACM0") and check.endswith(" --port /dev/ttyACM0")
    assert "No emulator has this board." in lines


@pytest.mark.parametrize("build", ["scons", "cmake"])
def test_a_module_needs_no_port_and_no_flash(build: str) -> None:
    files = project_files(build, Parts("linux-kmod"))
    said = (files["README.md"] + files[LISTS[build]]).decode()
    assert "No emulator has this board" not in said and "ttyACM0" not in said and "lash" not in said
    assert "loads it in an emulated machine" in said and "`nn_mnist.ko`" in said
    if build == "scons":
        assert 'Default("check")' in said


@pytest.mark.turns(2)
@pytest.mark.projects
@pytest.mark.parametrize("build", ["scons", "cmake"])
def test_a_module_for_another_kernel(build: str, tmp_path: Path) -> None:
    """The user says which; headers that are not there show that the build is told."""
    if shutil.which(build) is None:
        pytest.skip(f"{build} is not installed")
    files = project_files(build, Parts("linux-kmod"))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    if build == "scons":
        assert "`scons program kdir=DIR`" in files["README.md"].decode()
        done = start("scons", "-C", tmp_path, "program", "kdir=/nowhere")
    else:
        assert '`"-DBUILD_OPTIONS=--kdir=DIR"`' in files["README.md"].decode()
        given = [f"-Dnnbuild_DIR={ROOT / 'nnbuild' / 'builds' / 'cmake'}", f"-DNNBUILD_PYTHON={sys.executable}"]
        done = start("cmake", "-S", tmp_path, "-B", tmp_path / "b", *given, "-DBUILD_OPTIONS=--kdir=/nowhere")
    assert done.status != 0 and "/nowhere: there are no kernel headers." in " ".join(done.text.split())


@pytest.mark.turns(3)
@pytest.mark.projects
@pytest.mark.parametrize(
    ("board", "name"),
    [
        ("stm32", "kws-v1.2.h5"),
        ("linux", "2net.h5"),
        pytest.param("stm32", "mein modell ü.h5", marks=pytest.mark.full),
        pytest.param("linux", "é.h5", marks=pytest.mark.full),
        pytest.param("stm32", "if.h5", marks=pytest.mark.full),
        ("linux", "test.h5"),  # a target of CMake's own
        pytest.param("linux", "server_check.h5", marks=pytest.mark.full),  # one of the project's
    ],
)
def test_a_cmake_project_of_every_files_name(board: str, name: str, tmp_path: Path) -> None:
    """Every part of it names the C alike: the command, the template, and CMake's functions."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    model = tmp_path / name
    write_model(model)
    for file, content in project_files("cmake", Parts(board, model, "float", None, None, None)).items():
        (tmp_path / file).write_bytes(content)
    given = [f"-Dnnbuild_DIR={ROOT / 'nnbuild' / 'builds' / 'cmake'}", f"-DNNBUILD_PYTHON={sys.executable}"]
    for words in (["-S", tmp_path, "-B", tmp_path / "b", *given], ["--build", tmp_path / "b"]):
        done = start("cmake", *words)
        assert done.status == 0, done.text


def test_a_model_without_samples(tmp_path: Path) -> None:
    """No option names a file that is not there."""
    model = Parts("linux").model
    for build in BUILDS:
        files = project_files(build, Parts("linux", model, "float", None, None))
        assert not [name for name in files if name.endswith(".npz")]
        assert ".npz" not in files[LISTS[build]].decode()


@pytest.mark.parametrize(
    ("board", "compiler"), [("linux-arm64", "aarch64-linux-gnu-gcc"), ("linux-rv64", "riscv64-linux-gnu-gcc")]
)
def test_a_program_for_another_system_has_its_compiler(board: str, compiler: str) -> None:
    assert f'CC="{compiler}"' in project_files("scons", Parts(board))["SConstruct"].decode()
    cmake = project_files("cmake", Parts(board))["CMakeLists.txt"].decode()
    assert f"set(CMAKE_C_COMPILER {compiler})\n" in cmake.partition("project(")[0]
    assert f"BOARD {board} QUANTIZE" in cmake.partition("add_executable")[0]
    assert "CC=" not in project_files("scons", Parts("linux"))["SConstruct"].decode()
