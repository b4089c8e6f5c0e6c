"""Models as CMake targets: what is built, what is built again, and what an installed library brings along."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cmake.conftest import APP, MAIN, PACKAGE, Project
from tests.offload.made_up import made_up
from tests.scons.conftest import write_model
from tests.support.running import EXAMPLE, NNBUILD, ROOT, printed, start, well

pytestmark = pytest.mark.projects

MODEL = "nnbuild_add_model(small MODEL small.h5)\n"


def later(path: Path) -> None:
    """Newer than everything that is there."""
    os.utime(path)


@pytest.mark.turns(4)
def test_what_is_built_again(project: Project) -> None:
    """One story, because every part of it begins where the last one ended."""
    project.write(MODEL + APP)
    assert project.configure().status == 0
    assert not list(project.build.rglob("small.c")), "nothing is printed at configure"
    first = project.did()
    assert "nnbuild compile small.h5" in first
    assert well(project.build / "app") == "0 3\n"
    assert project.did() == [], "nothing has changed"

    # A new time without new content: the model is printed again, and as the C is the same, nothing after it is done.
    later(project.source / "small.h5")
    assert project.did() == ["nnbuild compile small.h5"]
    assert project.did() == []

    # The weights: they are compiled, and what includes the header, which names the computation.
    write_model(project.source / "small.h5", 2.0)
    later(project.source / "small.h5")
    again = project.did()
    assert "nnbuild compile small.h5" in again
    assert any("small_weights.c.o" in step for step in again)
    assert project.did() == []

    # A model that was replaced by an older one, as by a copy that keeps times.
    write_model(project.source / "small.h5", 3.0)
    os.utime(project.source / "small.h5", (10**9, 10**9))
    assert any("small_weights.c.o" in step for step in project.did())
    assert project.did() == []

    # An option.
    project.write(MODEL.replace(")", " OPTIMIZE size)") + APP)
    assert project.did()[0] == "nnbuild compile small.h5"
    assert project.did() == []


@pytest.mark.turns(3)
def test_a_broken_model_fails_the_build_and_not_the_configuration(project: Project) -> None:
    (project.source / "small.h5").write_bytes(b"hello")
    project.write(MODEL + APP)
    assert project.configure().status == 0
    done = project.make()
    assert done.status != 0
    assert "small.h5: it is not a model: neither HDF5, nor a Keras zip, nor TensorFlow Lite" in done.text
    assert "Traceback" not in done.text
    write_model(project.source / "small.h5")
    later(project.source / "small.h5")
    assert project.make().status == 0


@pytest.mark.turns(3)
def test_two_models_in_one_program_install_and_export(project: Project, tmp_path: Path) -> None:
    """One of them with weights that the assembler takes in."""
    project.write(
        MODEL
        + "nnbuild_add_model(other MODEL small.h5 NAME second WEIGHTS binary QUANTIZE int8)\n"
        + APP
        + "target_link_libraries(app PRIVATE nnbuild::other)\n"
        "install(TARGETS small other EXPORT models ARCHIVE DESTINATION lib PUBLIC_HEADER DESTINATION include)\n"
        "install(EXPORT models NAMESPACE nnbuild:: DESTINATION lib/cmake/models)\n"
        'export(TARGETS small other NAMESPACE nnbuild:: FILE "${CMAKE_BINARY_DIR}/exported.cmake")\n'
    )
    main = MAIN.replace("#include", '#include "second.h"\n#include', 1)
    (project.source / "main.c").write_text(main.replace("small_run(&model)", "small_run(&model) + second_run(&other)"))
    text = (project.source / "main.c").read_text().replace("int main", "static second_context other;\nint main")
    (project.source / "main.c").write_text(text)
    assert project.configure().status == 0
    done = project.make()
    assert done.status == 0, done.text
    assert well(project.build / "app") == "0 3\n"

    well("cmake", "--install", project.build, "--prefix", tmp_path / "installed")
    user = tmp_path / "user"
    user.mkdir()
    (user / "main.c").write_text(MAIN)
    for name, file in (
        ("installed", tmp_path / "installed" / "lib" / "cmake" / "models" / "models.cmake"),
        ("exported", project.build / "exported.cmake"),
    ):
        (user / "CMakeLists.txt").write_text(
            f'cmake_minimum_required(VERSION 3.20)\nproject(user C)\ninclude("{file.as_posix()}")\n{APP}'
        )
        well("cmake", "-S", user, "-B", tmp_path / name / "build", "-G", project.generator)
        well("cmake", "--build", tmp_path / name / "build")
        assert well(tmp_path / name / "build" / "app") == "0 3\n"


@pytest.mark.turns(3)
def test_paths_with_blanks_and_other_letters(project: Project, tmp_path: Path) -> None:
    """Also a model and samples that lie outside of the project."""
    apart = tmp_path / "mes modèles é"
    apart.mkdir()
    shutil.copy(EXAMPLE / "mnist.h5", apart / "réseau 1.h5")
    shutil.copy(EXAMPLE / "calibration.npz", apart / "échantillons.npz")
    source = project.source.rename(tmp_path / "mon projet é")
    moved = Project(source, tmp_path / "là bas" / "build", project.generator)
    moved.write(
        f'nnbuild_add_model(small MODEL "{apart / "réseau 1.h5"}" QUANTIZE int8 '
        f'CALIBRATE "{apart / "échantillons.npz"}" WEIGHTS binary)\n' + APP
    )
    assert moved.configure().status == 0
    done = moved.make()
    assert done.status == 0, done.text
    assert well(moved.build / "app") == "0 10\n"
    assert moved.did() == []
    later(apart / "échantillons.npz")
    assert moved.did() == ["nnbuild compile " + str(apart / "réseau 1.h5")]


@pytest.mark.turns(3)
def test_a_device_beside_the_core(ninja: Project) -> None:
    """Its driver is a part of the library, and it computes: without it the program would count no task."""
    made_up(ninja.source / "mine")
    ninja.write(
        f'nnbuild_add_model(small MODEL "{EXAMPLE / "mnist.h5"}" QUANTIZE int8\n'
        f'  CALIBRATE "{EXAMPLE / "calibration.npz"}"\n'
        f"  DEVICE mine ISA c99 PLACE logits=cpu stem_conv=device)\n" + APP
    )
    told = MAIN.replace("return 0;", 'printf("%u\\n", (unsigned)nn_offload_device()->submitted);\n    return 0;')
    (ninja.source / "main.c").write_text('#include "nn_offload.h"\n' + told)
    assert ninja.configure().status == 0
    done = ninja.make()
    assert done.status == 0, done.text
    assert well(ninja.build / "app") == "0 10\n9\n"
    assert ninja.did() == []


@pytest.mark.turns(3)
def test_nothing_is_written_beside_the_sources(ninja: Project) -> None:
    ninja.write(MODEL + APP)
    before = sorted(ninja.source.rglob("*"))
    assert ninja.configure().status == 0
    assert ninja.make().status == 0
    assert sorted(ninja.source.rglob("*")) == before


@pytest.mark.turns(3)
def test_a_model_that_another_step_makes(ninja: Project) -> None:
    (ninja.source / "small.h5").rename(ninja.source / "trained.bin")
    ninja.write(
        'set(trained "${CMAKE_SOURCE_DIR}/trained.bin")\nset(model "${CMAKE_CURRENT_BINARY_DIR}/small.h5")\n'
        'add_custom_command(OUTPUT "${model}" DEPENDS "${trained}"\n'
        '  COMMAND "${CMAKE_COMMAND}" -E copy "${trained}" "${model}")\n'
        'nnbuild_add_model(small MODEL "${model}")\n' + APP
    )
    assert ninja.configure().status == 0
    done = ninja.make()
    assert done.status == 0, done.text
    assert well(ninja.build / "app") == "0 3\n"


def test_the_c_is_that_of_the_command_line(ninja: Project, tmp_path: Path) -> None:
    ninja.write(f'nnbuild_add_model(mnist MODEL mnist.h5 QUANTIZE int8 CALIBRATE "{EXAMPLE / "calibration.npz"}")\n')
    assert ninja.configure().status == 0
    assert ninja.make("mnist_c").status == 0
    options = ["--quantize", "int8", "--calibrate", EXAMPLE / "calibration.npz"]
    well(*NNBUILD, "compile", EXAMPLE / "mnist.h5", *options, "-o", tmp_path / "here")
    assert printed(ninja.build / "nnbuild" / "mnist", "mnist") == printed(tmp_path / "here", "mnist")


@pytest.mark.turns(3)
def test_properties_and_audit(ninja: Project) -> None:
    ninja.write(
        MODEL + "nnbuild_audit(nnbuild::small POLICY mcu)\n"
        "foreach(name ARENA STATE FLASH)\n"
        "  get_target_property(value nnbuild::small NNBUILD_${name}_BYTES)\n"
        '  message(STATUS "${name} ${value}")\n'
        "endforeach()\n"
    )
    said = ninja.configure()
    told = well(*NNBUILD, "compile", ninja.source / "small.h5", "--dry-run", "--json")
    facts = json.loads(told[told.index("{") :])  # notes stand before it
    assert facts["weights"] >= 60
    sizes = {"ARENA": facts["arena"], "STATE": 0, "FLASH": facts["weights"]}
    assert {f"-- {name} {size}" for name, size in sizes.items()} <= set(said.lines)
    assert "nnbuild audit small" in ninja.did()
    assert (ninja.build / "nnbuild" / "small.audit.json").is_file()
    assert ninja.did() == []


def test_an_audit_that_finds_something_fails_each_time(ninja: Project) -> None:
    (ninja.source / "uses.c").write_text("#include <stdlib.h>\nvoid *take(void) { return malloc(3); }\n")
    ninja.write("add_library(uses uses.c)\nnnbuild_audit(uses POLICY mcu)\n")
    assert ninja.configure().status == 0
    for _ in range(2):
        done = ninja.make()
        assert done.status != 0
        assert "malloc" in done.text


@pytest.mark.turns(4)
@pytest.mark.emulator
def test_a_cross_build(project: Project) -> None:
    """For a Cortex-M4 with a toolchain file, and the firmware of a board beside it, checked in the emulator."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (project.source / "m4.cmake").write_text(
        "set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR arm)\nset(CMAKE_C_COMPILER arm-none-eabi-gcc)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
        'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard")\n'
    )
    project.write(
        "nnbuild_add_model(kws MODEL small.h5 QUANTIZE int8 ISA armv7em_dsp NAME kws)\n"
        "nnbuild_add_model(portable MODEL small.h5)\n"
        "nnbuild_audit(nnbuild::kws POLICY mcu)\n"
        "nnbuild_add_firmware(server MODEL small.h5 BOARD stm32 QUANTIZE int8)\n"
        'add_executable(app main.c)\ntarget_link_options(app PRIVATE --specs=nosys.specs "-Wl,-e,main")\n'
        "target_link_libraries(app PRIVATE nnbuild::portable)\n"
    )
    main = MAIN.replace("small", "portable").replace("SMALL", "PORTABLE").replace('printf("%d %d\\n", ', "return (")
    (project.source / "main.c").write_text(main.replace("#include <stdio.h>\n", ""))
    said = project.configure(f"-DCMAKE_TOOLCHAIN_FILE={project.source / 'm4.cmake'}")
    assert said.status == 0, said.text
    done = project.make()
    assert done.status == 0, done.text
    assert "Machine:                           ARM" in well("readelf", "-h", project.build / "app")
    checked = project.make("server_check")
    assert checked.status == 0, checked.text
    assert re.search(r"PASS: \d+ samples", checked.text)
    assert project.did() == []


def test_the_package_is_found_where_the_command_line_says() -> None:
    assert well(*NNBUILD, "--cmakedir") == f"{PACKAGE.as_posix()}\n"
    assert start(*NNBUILD, "--cmakedir").status == 0


@pytest.mark.turns(3)
def test_a_front_end_is_a_part_of_the_library(ninja: Project) -> None:
    keyword = ROOT / "examples" / "keyword"
    ninja.write(
        f'nnbuild_add_model(small MODEL "{keyword / "words.h5"}" QUANTIZE int8 CALIBRATE "{keyword / "recordings"}"\n'
        f'  FEATURES "{keyword / "sound.toml"}" STREAM auto,hop=2 ISA c99)\n' + APP
    )
    (ninja.source / "main.c").write_text(
        '#include "small_listen.h"\nstatic small_listener l;\nint main(void)\n{\n    static const int16_t x[1600];\n'
        "    small_listen_init(&l);\n    return small_listen(&l, x, 1600);\n}\n"
    )
    assert ninja.configure().status == 0
    done = ninja.make()
    assert done.status == 0, done.text
    assert well(ninja.build / "app") == ""
    assert ninja.did() == []


@pytest.mark.turns(3)
@pytest.mark.slow
def test_a_program_that_takes_sound_is_checked(ninja: Project) -> None:
    """Its check gives no JUnit report."""
    keyword = ROOT / "examples" / "keyword"
    ninja.write(
        f'nnbuild_add_firmware(words MODEL "{keyword / "words.h5"}" BOARD linux FEATURES "{keyword / "sound.toml"}")\n'
    )
    assert ninja.configure().status == 0
    done = ninja.make("words_check")
    assert done.status == 0, done.text
    assert "PASS" in done.text
    assert (ninja.build / "nnbuild" / "words" / "check.json").is_file()
