"""What CMake says of a project that cannot be built."""

from __future__ import annotations

import re

import pytest

from tests.cmake.conftest import APP, PACKAGE, Project
from tests.support.running import Done

pytestmark = pytest.mark.projects

MODEL = "nnbuild_add_model(small MODEL small.h5)\n"

WRONG = {
    "nnbuild_add_model(small)": "nnbuild_add_model(small): give it a MODEL, a .h5, .keras, .tflite or .onnx file.",
    "nnbuild_add_model(small MODEL small.h5 QUANTISE int8)": (
        "nnbuild_add_model(small): unknown arguments QUANTISE;int8. `nnbuild docs cmake` lists its options."
    ),
    "nnbuild_add_model(small MODEL small.h5 QUANTIZE)": (
        "nnbuild_add_model(small): a value is missing after QUANTIZE."
    ),
    "nnbuild_add_model(small MODEL small.h5)\nnnbuild_add_model(small MODEL small.h5)": (
        "nnbuild_add_model(small): a target of this name already exists. Choose another name."
    ),
    "nnbuild_add_model(1st MODEL small.h5)": (
        "nnbuild_add_model(1st): nnbuild: name '1st': it cannot begin the names in the C code: it does not begin with "
        "a letter. Give another one with --name, name= for scons or NAME for CMake, of letters, digits"
    ),
    "nnbuild_add_model(small MODEL small.h5 NAME if)": "'if' is a word of C or C++ itself.",
    "nnbuild_add_firmware(small MODEL small.h5 BOARD stm32 NAME if)": "'if' is a word of C or C++ itself.",
    "nnbuild_add_application(small SOURCES main.c MODEL small.h5 BOARD stm32 NAME if)": (
        "nnbuild_add_application(small): nnbuild: name 'if': it cannot begin"
    ),
    "nnbuild_audit(small POLICY mcu)": (
        "nnbuild_audit(small): there is no such target. Call it after the target is defined."
    ),
    "nnbuild_add_firmware(server MODEL small.h5)": (
        "nnbuild_add_firmware(server): give it a BOARD. `nnbuild boards` lists all."
    ),
    "nnbuild_add_firmware(server MODEL small.h5 BOARD linux BUILD_OPTIONS --max-instructions=5)": (
        "nnbuild_add_firmware(server): nnbuild: board 'linux': a bound on instructions is proved only"
    ),
    "nnbuild_add_firmware(server MODEL small.h5 BOARD stm32 BUILD_OPTIONS --kdir=/nope)": (
        "board 'stm32f405': its build does not take the choice of a kdir. Leave it out"
    ),
    "nnbuild_add_firmware(server MODEL small.h5 BOARD stm23)": (
        "nnbuild_add_firmware(server): nnbuild: board 'stm23': there is no such board. Did you mean stm32"
    ),
}


def flat(done: Done) -> str:
    """CMake breaks lines where it likes."""
    return re.sub(r"\s+", " ", done.text)


@pytest.mark.turns(4)
@pytest.mark.parametrize("text", WRONG)
def test_what_is_refused_at_configure(text: str, ninja: Project) -> None:
    ninja.write(text + "\n")
    done = ninja.configure()
    assert done.status != 0
    assert WRONG[text] in flat(done), done.text


def test_an_instruction_set_that_there_is_not(ninja: Project) -> None:
    ninja.write(MODEL.replace(")", " ISA armv9)"))
    cause = "nnbuild: isa 'armv9': there is none."
    said = ninja.configure()
    assert (said.status, cause in flat(said)) == (0, True)
    done = ninja.make()
    assert done.status != 0
    assert cause in done.text


def test_two_models_of_one_name_in_one_program(ninja: Project) -> None:
    ninja.write(
        MODEL
        + "nnbuild_add_model(other MODEL small.h5 NAME small QUANTIZE int8)\n"
        + APP
        + "target_link_libraries(app PRIVATE nnbuild::other)\n"
    )
    done = ninja.configure()
    assert done.status != 0
    assert 'INTERFACE_NNBUILD_MODEL_small property of "other" does not agree' in flat(done).replace("INTERFACE_ ", "")


def test_two_models_of_one_name_in_two_programs(ninja: Project) -> None:
    ninja.write(
        MODEL
        + "nnbuild_add_model(other MODEL small.h5 NAME small QUANTIZE int8)\n"
        + APP
        + "add_executable(second main.c)\ntarget_link_libraries(second PRIVATE nnbuild::other)\n"
    )
    assert ninja.configure().status == 0
    assert ninja.make().status == 0


def test_a_model_that_is_not_there(ninja: Project) -> None:
    ninja.write("nnbuild_add_model(small MODEL absent.h5)\n")
    assert ninja.configure().status == 0
    done = ninja.make()
    assert done.status != 0
    assert "absent.h5" in done.text


def test_a_python_without_nnbuilds_packages(ninja: Project) -> None:
    false = ninja.source / "python"
    false.write_text("#!/bin/sh\necho no module named numpy >&2\nexit 1\n")
    false.chmod(0o755)
    ninja.write("")
    done = ninja.configure(f"-DNNBUILD_PYTHON={false}")
    assert done.status != 0
    assert "cannot run nnbuild. Give the Python it is installed for with -DNNBUILD_PYTHON=" in flat(done)
    assert "no module named numpy" in done.text


def test_a_cmake_that_is_too_old(ninja: Project) -> None:
    """The version is a variable, so an older one can be played."""
    (ninja.source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES C)\nset(CMAKE_VERSION 3.18.4)\n"
        "find_package(nnbuild CONFIG REQUIRED)\n"
    )
    done = ninja.configure()
    assert done.status != 0
    assert "nnbuild needs CMake 3.20 or later, and this is 3.18.4." in flat(done)


@pytest.mark.parametrize(("wanted", "there"), [("0.1", True), ("0", True), ("1.0", False), ("99", False)])
def test_the_version_that_is_asked_for(ninja: Project, wanted: str, there: bool) -> None:
    assert (PACKAGE / "nnbuildConfigVersion.cmake").is_file()
    (ninja.source / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES NONE)\nfind_package(nnbuild {wanted} REQUIRED)\n"
    )
    assert (ninja.configure().status == 0) == there


@pytest.mark.turns(2)
@pytest.mark.parametrize("port", ["", "/dev/ttyACM0"])
def test_what_a_firmware_is_built_with(ninja: Project, port: str) -> None:
    """The rate is that of the firmware and of the check, and the port that of the check alone."""
    ninja.write("nnbuild_add_firmware(server MODEL small.h5 BOARD stm32 BAUD 921600 WEIGHTS array THREADS 1)\n")
    assert ninja.configure(f"-DNNBUILD_PORT={port}").status == 0
    rules = (ninja.build / "build.ninja").read_text()
    build, check = (re.search(rf"-m nnbuild {word} .*", rules) for word in ("build", "check"))
    assert build is not None and check is not None
    assert "--weights array" in build[0]
    assert "--port" not in build[0]
    assert ("--port /dev/ttyACM0" in check[0]) == bool(port)
    assert "--baud 921600" in build[0]
    assert "--baud 921600" in check[0]


def test_a_board_of_the_projects_own(ninja: Project) -> None:
    """The command runs in the build's folder, the table lies beside the list."""
    table = ninja.source / "boards" / "mine.toml"
    table.parent.mkdir()
    table.write_text('extends = "stm32f405"\nsummary = "mine"\ntested_on = "build only"\n')
    ninja.write("nnbuild_add_firmware(server MODEL small.h5 BOARD mine)\n")
    done = ninja.configure()
    assert done.status == 0, done.text
    assert f"--board {table}" in (ninja.build / "build.ninja").read_text()
