"""A CMake project of one's own, beside the checkout."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scons.conftest import write_model
from tests.support.running import EXAMPLE, ROOT, Done, start

PACKAGE = ROOT / "nnbuild" / "builds" / "cmake"
HEAD = "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C)\nfind_package(nnbuild CONFIG REQUIRED)\n"
MAIN = """\
#include <stdio.h>
#include "small.h"
static small_context model;
int main(void)
{
    small_init(&model);
    for (int i = 0; i < SMALL_INPUT0_SIZE; ++i) {
        small_input(&model, 0)[i] = 0;
    }
    printf("%d %d\\n", small_run(&model), SMALL_OUTPUT0_SIZE);
    return 0;
}
"""
APP = "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE nnbuild::small)\n"


@dataclass(frozen=True)
class Project:
    """A source folder and its build folder."""

    source: Path
    build: Path
    generator: str = "Ninja"

    def write(self, text: str) -> None:
        (self.source / "CMakeLists.txt").write_text(HEAD + text)

    def configure(self, *options: str) -> Done:
        here = [f"-Dnnbuild_DIR={PACKAGE}", f"-DNNBUILD_PYTHON={sys.executable}", "-DCMAKE_C_COMPILER_WORKS=1"]
        return start("cmake", "-S", self.source, "-B", self.build, "-G", self.generator, *here, *options)

    def make(self, *targets: str) -> Done:
        chosen = ["--target", *targets] if targets else []
        return start("cmake", "--build", self.build, *chosen)

    def did(self, *targets: str) -> list[str]:
        """What a build that ends well did, without what it only looked at."""
        done = self.make(*targets)
        assert done.status == 0, done.text
        steps = r"^\[[^]]*\] +((?:Building|Linking|nnbuild) .*?)(?:\x1b.*)?$"
        return [step.replace("object CMakeFiles/", "") for step in re.findall(steps, done.text, re.MULTILINE)]


@pytest.fixture(params=["Ninja", pytest.param("Unix Makefiles", marks=pytest.mark.full)])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    needed = {"Ninja": "ninja", "Unix Makefiles": "make"}[request.param]
    for tool in ("cmake", needed):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    source = tmp_path / "project"
    source.mkdir()
    write_model(source / "small.h5")
    (source / "main.c").write_text(MAIN)
    return Project(source, tmp_path / "build", request.param)


@pytest.fixture
def ninja(tmp_path: Path) -> Project:
    """For what does not hang on the generator."""
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        pytest.skip("cmake or ninja is not installed")
    source = tmp_path / "project"
    source.mkdir()
    write_model(source / "small.h5")
    (source / "main.c").write_text(MAIN)
    shutil.copy(EXAMPLE / "mnist.h5", source)
    return Project(source, tmp_path / "build")
