"""Packages of other builds: what can be built here is, the others are built with stand-ins for their build's functions.

Layouts as the projects' own pages and files describe them; what of them is used stands in the tests below:
- Zephyr: docs.zephyrproject.org/latest/develop/modules.html, and scripts/zephyr_module.py of zephyrproject-rtos/zephyr,
  whose METADATA_SCHEMA and validate_setting decide what a module.yml may say; samples as in
  scripts/schemas/twister/testsuite-schema.yaml;
- ESP-IDF: docs.espressif.com/projects/esp-idf/en/latest, "Build System", and the manifest of the component manager,
  docs.espressif.com/projects/idf-component-manager/en/latest/reference/manifest_file.html;
- Meson's subprojects, Bazel's modules.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.outputs.test_packages import write
from tests.support.running import EXAMPLE, well

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

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


@pytest.mark.turns(4)
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


MODULE_KEYS = {
    "": {"name": str, "build": dict, "tests": list, "samples": list, "boards": list, "blobs": list},
    "build": {
        **dict.fromkeys(("cmake", "kconfig", "sysbuild-cmake", "sysbuild-kconfig"), str),
        **dict.fromkeys(("cmake-ext", "kconfig-ext", "sysbuild-cmake-ext", "sysbuild-kconfig-ext"), bool),
        **{"depends": list, "settings": dict},
    },
}
"""METADATA_SCHEMA of Zephyr's scripts/zephyr_module.py: what else is said there is an error of every build."""
SAMPLE_KEYS = {"sample", "tests", "common"}
TEST_KEYS = {"tags", "harness", "harness_config", "platform_allow", "integration_platforms", "build_only", "extra_args"}
MANIFEST_KEYS = {
    *("version", "maintainers", "description", "license", "tags", "url", "repository", "documentation", "issues"),
    *("targets", "dependencies", "examples", "files", "discussion", "repository_info", "include_build"),
}
"""Of the component manager's manifest; a name that it does not know is told as a mistake."""
DEPENDENCY_KEYS = {"version", "path", "git", "override_path", "rules", "public", "require", "matches", "pre_release"}


def test_what_zephyr_and_west_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "zephyr")
    module = yaml.safe_load((folder / "zephyr" / "module.yml").read_text())
    for where, keys in MODULE_KEYS.items():
        for key, value in (module[where] if where else module).items():
            assert isinstance(value, keys[key]), key
    build = module["build"]
    assert (folder / build["cmake"] / "CMakeLists.txt").is_file() and (folder / build["kconfig"]).is_file()
    assert all((folder / each).is_dir() for each in module["samples"])
    # The build makes ZEPHYR_<NAME>_MODULE of the name, so it must not need other letters.
    assert re.fullmatch(r"[A-Za-z0-9_]+", module["name"])
    assert (folder / "Kconfig").read_text().splitlines()[1] == "config NN_MNIST"
    sample = folder / "samples" / "classify"
    assert "CONFIG_NN_MNIST=y" in (sample / "prj.conf").read_text()
    lines = [line for line in (sample / "CMakeLists.txt").read_text().splitlines() if not line.startswith("#")]
    order = ["cmake_minimum_required", "list", "find_package", "project", "target_sources"]
    assert [line.split("(")[0] for line in lines] == order, "modules are looked for by find_package(Zephyr)"
    said = yaml.safe_load((sample / "sample.yaml").read_text())
    assert set(said) <= SAMPLE_KEYS and "name" in said["sample"]
    for name, test in said["tests"].items():
        assert name.count(".") >= 1 and set(test) <= TEST_KEYS
        assert set(test["harness_config"]) <= {"type", "regex", "ordered", "record"}
        assert all(re.compile(each) for each in test["harness_config"]["regex"])


def test_what_the_component_manager_reads(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "espidf")
    own = yaml.safe_load((folder / "idf_component.yml").read_text())
    assert set(own) <= MANIFEST_KEYS and re.fullmatch(r"\d+\.\d+\.\d+", own["version"])
    main = folder / "examples" / "classify" / "main"
    manifest = yaml.safe_load((main / "idf_component.yml").read_text())
    assert set(manifest) <= MANIFEST_KEYS
    for found in (own, manifest):
        for wanted in found["dependencies"].values():
            assert isinstance(wanted, str) or set(wanted) <= DEPENDENCY_KEYS
    where = manifest["dependencies"][folder.name]["override_path"]
    assert (main / where).resolve() == folder.resolve(), "a path is one from the manifest that says it"
    project = (folder / "examples" / "classify" / "CMakeLists.txt").read_text().splitlines()
    order = [line.split("(")[0] for line in project if not line.startswith("#")]
    assert order == ["cmake_minimum_required", "include", "project"], "these three, and in this order"
    assert "include($ENV{IDF_PATH}/tools/cmake/project.cmake)" in project
    for file in (folder / "CMakeLists.txt", main / "CMakeLists.txt"):
        text = file.read_text()
        (called,) = re.findall(r"^idf_component_register\((.*?)\)$", text, re.MULTILINE | re.DOTALL)
        assert set(re.findall(r"\b[A-Z_]{4,}\b", re.sub(r'"[^"]*"', "", called))) <= {"SRCS", "INCLUDE_DIRS"}
        assert all((file.parent / each).is_file() for each in re.findall(r'"([^"]+\.[cS])"', called))


@pytest.mark.projects
def test_a_meson_subproject(tmp_path: Path) -> None:
    if shutil.which("meson") is None:
        pytest.skip("meson is not installed")
    write(tmp_path / "subprojects" / "mnist", "meson", "--quantize", "int8")
    zephyr = write(tmp_path / "other", "zephyr", "--quantize", "int8")
    for name in ("main.c", "mnist_sample.h"):
        shutil.copy(zephyr / "samples" / "classify" / "src" / name, tmp_path / name)
    (tmp_path / "meson.build").write_text(MESON)
    well("meson", "setup", "build", folder=tmp_path)
    well("ninja", "-C", "build", folder=tmp_path)
    assert SAID.search(well(tmp_path / "build" / "app"))


def test_a_bazel_module_names_its_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "bazel")
    named = set(re.findall(r'"(src/[^"]+)"', (folder / "BUILD.bazel").read_text()))
    assert named == {f"src/{path.name}" for path in (folder / "src").iterdir()}
    assert 'module(name = "mnist", version = "' in (folder / "MODULE.bazel").read_text()


@pytest.mark.turns(3)
def test_a_cmsis_pack_holds_what_its_description_names(tmp_path: Path) -> None:
    """As Open-CMSIS-Pack has them: a .pdsc at the top of the .pack, and a clayer.yml with groups of files."""
    folder = write(tmp_path / "mnist", "cmsis-pack", "--quantize", "int8", "--board", "stm32f405")
    (pack,) = folder.glob("nnbuild.mnist.*.pack")
    with zipfile.ZipFile(pack) as archive:
        names = set(archive.namelist())
        description = ElementTree.fromstring(archive.read("nnbuild.mnist.pdsc"))
    (named,) = description.iter("component")
    listed = [file.attrib for file in named.iter("file")]
    assert {each["name"] for each in listed if each["category"] != "include"} <= names
    layer = (folder / "mnist.clayer.yml").read_text()
    sources = [each["name"] for each in listed if each["category"] == "source"]
    assert len(sources) == 3 and all(f"- file: {name}" in layer for name in sources)
    assert "device: ARMCM4" in (folder / "examples" / "classify" / "classify.csolution.yml").read_text()
    again = write(tmp_path / "again", "cmsis-pack", "--quantize", "int8", "--board", "stm32f405")
    assert (again / pack.name).read_bytes() == pack.read_bytes()
    assert "mnist_sample.h" in {path.name for path in (folder / "examples" / "classify").iterdir()}
    files = [folder / name for name in sources]
    well(
        "gcc", f"-I{folder / 'src'}", "-O1", folder / "examples" / "classify" / "main.c", *files, "-o", tmp_path / "app"
    )
    assert SAID.search(well(tmp_path / "app"))


def test_the_folder_for_cubeide(tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "cubeide", "--quantize", "int8", "--board", "nucleo-f446re")
    assert {path.name for path in folder.iterdir()} >= {"mnist.c", "mnist.h", "mnist_kernels.c", "README.md"}
    readme = (folder / "README.md").read_text()
    code = readme.split("```c\n")[1].split("```")[0].split("\n\n")
    program = f"{code[0]}\n{code[1]}\nint main(void)\n{{\n{code[2]}\n    return 0;\n}}\n"
    (tmp_path / "main.c").write_text(program)
    well("gcc", f"-I{folder}", "-O1", tmp_path / "main.c", *folder.glob("*.c"), "-o", tmp_path / "app")
    assert SAID.search(well(tmp_path / "app"))


def test_a_sample_program_names_the_class(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("".join(f"digit {number}\n" for number in range(10)))
    given = ["--quantize", "int8", "--calibrate", EXAMPLE / "calibration.npz", "--labels", names]
    folder = write(tmp_path / "mnist", "zephyr", *given)
    program = folder / "samples" / "classify" / "src" / "main.c"
    sources = (folder / "src").glob("*.c")
    well("gcc", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'src'}", program, *sources, "-o", tmp_path / "app")
    assert re.fullmatch(r"It is: digit \d \([\d.]+\)\n", well(tmp_path / "app"))
    assert "It is: .+" in (folder / "samples" / "classify" / "sample.yaml").read_text()


FREERTOS = """\
#include <stddef.h>
#include <stdint.h>
typedef struct { int unused; } StaticTask_t;
typedef uint32_t StackType_t;
typedef void *QueueHandle_t;
#define portMAX_DELAY 0xffffffffu
#define pdTRUE 1
#define tskIDLE_PRIORITY 0
#define taskYIELD()
int xQueueReceive(QueueHandle_t queue, void *to, uint32_t wait);
void *xTaskCreateStatic(void (*code)(void *), const char *name, uint32_t words, void *given, unsigned priority,
                        StackType_t *stack, StaticTask_t *task);
"""


def test_the_page_of_freertos_compiles(tmp_path: Path) -> None:
    """With the declarations of FreeRTOS's reference manual that it uses."""
    folder = write(tmp_path / "model", "c", "--quantize", "int8", "--name", "kws", "--board", "stm32f405")
    for name in ("FreeRTOS.h", "queue.h", "task.h"):
        (tmp_path / name).write_text(FREERTOS if name == "FreeRTOS.h" else "")
    page = (ROOT / "docs" / "freertos.md").read_text()
    (tmp_path / "task.c").write_text(page.split("```c\n")[1].split("```")[0])
    well("gcc", "-Wall", "-Wextra", "-Werror", f"-I{folder}", f"-I{tmp_path}", "-c", tmp_path / "task.c",
         "-o", tmp_path / "task.o")  # fmt: skip
