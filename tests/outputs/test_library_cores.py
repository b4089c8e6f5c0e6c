"""A library that several cores compute, built with compilers of the user's by CMake and by SCons."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nnbuild.cli import main
from nnbuild.outputs.cores import ANYWHERE

pytestmark = pytest.mark.slow

MNIST = Path(__file__).parents[2] / "examples" / "mnist"
PROGRAM = """\
#include <stdio.h>
#include <string.h>
#include "mnist.h"
#include "nn_cores.h"

static mnist_context one, all;

static void give(mnist_context *to)
{
    int8_t *input = mnist_input(to, 0);
    for (int i = 0; i < MNIST_INPUT0_SIZE; i++) {
        input[i] = (int8_t)(i * 7);
    }
}

int main(void)
{
    mnist_init(&one);
    mnist_init(&all);
    give(&one);
    give(&all);
    if (nn_cores_start(MNIST_PARTS) != 0 || mnist_run(&one) != 0 || mnist_run_parallel(&all, nn_cores_run, 0) != 0) {
        return 2;
    }
    puts(memcmp(mnist_output(&one, 0), mnist_output(&all, 0), MNIST_OUTPUT0_SIZE) ? "differs" : "same");
    return 0;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(app C)
add_subdirectory(lib)
add_executable(app main.c)
target_link_libraries(app mnist nn_cores)
"""
SCONS = """\
import os
env = Environment(ENV=os.environ)
network, cores = SConscript("lib/SConscript", exports={"env": env, "runtime": "posix"})
env.Program("app", ["main.c", network, cores], CPPPATH=["lib/include"], LINKFLAGS=["-pthread"])
"""
FREERTOS = """\
#include <stddef.h>
#include <stdint.h>
#define configMAX_PRIORITIES 8
#define configTICK_RATE_HZ 1000u
#define portMAX_DELAY 0xffffffffu
#define pdTRUE 1
#define pdMS_TO_TICKS(ms) (ms)
typedef uint32_t StackType_t, TickType_t, UBaseType_t;
typedef int32_t BaseType_t;
typedef struct { int unused; } StaticTask_t;
typedef void *TaskHandle_t;
TaskHandle_t xTaskCreateStaticAffinitySet(void (*code)(void *), const char *name, uint32_t depth, void *told,
    UBaseType_t priority, StackType_t *stack, StaticTask_t *task, UBaseType_t cores);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
void vTaskDelete(TaskHandle_t task);
void vTaskSuspend(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
BaseType_t xTaskNotifyGive(TaskHandle_t task);
uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t most);
TickType_t xTaskGetTickCount(void);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C is printed for 8 harts, and has nothing of theirs in it: any compiler takes it."""
    folder = tmp_path_factory.mktemp("library")
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("the compiler of the board is not installed")
    words = ["compile", str(MNIST / "mnist.h5"), "--quantize", "int8", "--calibrate", str(MNIST / "calibration.npz")]
    assert main([*words, "--board", "rv32-smp", "--output", "library", "-o", str(folder / "lib")]) == 0
    (folder / "main.c").write_text(PROGRAM)
    return folder


def output_of(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def test_the_archive_has_the_run_time(library: Path) -> None:
    listing = subprocess.run(["ar", "t", library / "lib/lib/libmnist.a"], check=True, capture_output=True, text=True)
    assert {"nn_cores.o", "nn_cores_rv.o", "mnist.o"} <= set(listing.stdout.split())


@pytest.mark.parametrize("runtime", ["posix", "openmp"])
def test_by_cmake(library: Path, runtime: str, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    (library / "CMakeLists.txt").write_text(CMAKE)
    configure = ["cmake", "-S", library, "-B", tmp_path, f"-DNN_CORES_RUNTIME={runtime}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    assert output_of(tmp_path / "app") == "same"


def test_by_scons(library: Path) -> None:
    (library / "SConstruct").write_text(SCONS)
    subprocess.run([sys.executable, "-m", "SCons", "-Q"], cwd=library, check=True, capture_output=True, env=os.environ)
    assert output_of(library / "app") == "same"


@pytest.mark.parametrize("runtime", [*ANYWHERE, "rv"])
def test_every_run_time_compiles_without_a_warning(library: Path, runtime: str, tmp_path: Path) -> None:
    """That of FreeRTOS against declarations of what it calls."""
    (tmp_path / "FreeRTOS.h").write_text(FREERTOS)
    (tmp_path / "task.h").write_text("")
    compiler = (
        ["riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32", "-ffreestanding"]
        if runtime == "rv"
        else ["gcc"]
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror", "-O2", "-fopenmp"]
    flags += ["-DNN_CLINT_BASE=0x2000000u", "-DNN_CLINT_HERTZ=10000000u"]
    flags = [flag for flag in flags if flag != "-fopenmp" or runtime == "openmp"]
    includes = [f"-I{library / 'lib' / place}" for place in ("include", "cores")]
    source = library / "lib" / "cores" / f"nn_cores_{runtime}.c"
    subprocess.run([*compiler, *flags, *includes, f"-I{tmp_path}", "-c", source, "-o", tmp_path / "made.o"], check=True)
