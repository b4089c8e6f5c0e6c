"""Packages of other builds: what can be built here is, the others are built with stand-ins for their build's functions.

Layouts as the projects' own pages describe them: Zephyr's modules (docs.zephyrproject.org, "Modules": a module.yml
that names the folder of CMakeLists.txt and Kconfig), ESP-IDF's components (docs.espressif.com, "Component CMakeLists
Files", and the component manager's manifest), Meson's subprojects, Bazel's modules.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.outputs.test_packages import write
from tests.support.running import well

ZEPHYR = """\
cmake_minimum_required(VERSION 3.16)
project(stand_in C)
set(CONFIG_NN_MNIST y)
set(MODULE ${{CMAKE_CURRENT_SOURCE_DIR}}/mnist)
macro(zephyr_library_named name)
  set(library ${{name}})
  add_library(${{name}} STATIC)
endmacro()
macro(zephyr_library_sources)
  target_sources(${{library}} PRIVATE ${{ARGN}})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${{library}} PRIVATE ${{ARGN}})
endmacro()
macro(zephyr_include_directories)
  target_include_directories(${{library}} PUBLIC ${{ARGN}})
endmacro()
enable_language(ASM)
add_subdirectory(mnist)
add_executable(app mnist/{program})
target_link_libraries(app mnist)
"""
ESPIDF = """\
cmake_minimum_required(VERSION 3.16)
project(stand_in C ASM)
macro(idf_component_register)
  cmake_parse_arguments(ARG "" "" "SRCS;INCLUDE_DIRS" ${{ARGN}})
  set(COMPONENT_LIB mnist)
  add_library(mnist STATIC ${{ARG_SRCS}})
  target_include_directories(mnist PUBLIC ${{ARG_INCLUDE_DIRS}})
endmacro()
add_subdirectory(mnist)
file(WRITE ${{CMAKE_BINARY_DIR}}/start.c "void app_main(void);\\nint main(void) {{ app_main(); return 0; }}\\n")
add_executable(app mnist/{program} ${{CMAKE_BINARY_DIR}}/start.c)
target_link_libraries(app mnist)
"""
MESON = """\
project('stand_in', 'c')
executable('app', 'main.c', dependencies: dependency('mnist', fallback: ['mnist', 'mnist_dep']))
"""
SAID = re.compile(r"output \d of 10 is the largest")


@pytest.mark.projects
@pytest.mark.parametrize("weights", ["array", "binary"])
@pytest.mark.parametrize(
    ("kind", "text", "program"),
    [("zephyr", ZEPHYR, "samples/classify/src/main.c"), ("espidf", ESPIDF, "examples/classify/main/main.c")],
)
def test_a_component_is_built_by_its_own_cmake(
    kind: str, text: str, program: str, weights: str, tmp_path: Path
) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    write(tmp_path / "mnist", kind, "--quantize", "int8", "--weights", weights)
    (tmp_path / "CMakeLists.txt").write_text(text.format(program=program))
    well("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    well("cmake", "--build", tmp_path / "build")
    assert SAID.search(well(tmp_path / "build" / "app"))


def test_what_zephyr_and_west_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "zephyr")
    lines = (folder / "zephyr" / "module.yml").read_text().splitlines()[1:]
    module = dict(line.strip().split(": ") for line in lines if ": " in line)
    assert module == {"name": "mnist", "cmake": ".", "kconfig": "Kconfig"}
    assert (folder / "Kconfig").read_text().splitlines()[1] == "config NN_MNIST"
    assert "CONFIG_NN_MNIST=y" in (folder / "samples" / "classify" / "prj.conf").read_text()


def test_what_the_component_manager_reads(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "espidf")
    assert re.search(r'^version: "\d+\.\d+\.\d+"$', (folder / "idf_component.yml").read_text(), re.MULTILINE)
    manifest = (folder / "examples" / "classify" / "main" / "idf_component.yml").read_text()
    (where,) = re.findall(r'override_path: "(.*)"', manifest)
    assert (folder / "examples" / "classify" / "main" / where).resolve() == folder.resolve()


@pytest.mark.projects
def test_a_meson_subproject(tmp_path: Path) -> None:
    if shutil.which("meson") is None:
        pytest.skip("meson is not installed")
    write(tmp_path / "subprojects" / "mnist", "meson", "--quantize", "int8")
    zephyr = write(tmp_path / "other", "zephyr", "--quantize", "int8")
    shutil.copy(zephyr / "samples" / "classify" / "src" / "main.c", tmp_path / "main.c")
    (tmp_path / "meson.build").write_text(MESON)
    well("meson", "setup", "build", folder=tmp_path)
    well("ninja", "-C", "build", folder=tmp_path)
    assert SAID.search(well(tmp_path / "build" / "app"))


def test_a_bazel_module_names_its_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "bazel")
    named = set(re.findall(r'"(src/[^"]+)"', (folder / "BUILD.bazel").read_text()))
    assert named == {f"src/{path.name}" for path in (folder / "src").iterdir()}
    assert 'module(name = "mnist", version = "' in (folder / "MODULE.bazel").read_text()
