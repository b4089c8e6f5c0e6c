"""The examples of the pages, run from top to bottom in a project as `nnbuild new` makes it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running import NNBUILD, ROOT, start, well
from tests.support.rust import needs_rust

pytestmark = pytest.mark.projects

PIECE = re.compile(r"(?:<!-- file: (\S+) -->\n)?```(\w*)\n(.*?)```", re.DOTALL)
NEEDED = {
    "getting-started": ["gcc"],
    "scons": ["gcc"],
    "cmake": ["cmake"],
    "rust": [],
    "outputs": ["gcc", "pkg-config"],
    "c-api": ["gcc"],
}


def pieces(page: str) -> Iterator[tuple[str | None, str, str]]:
    """Every block: the file it is, its language and its text."""
    for found in PIECE.finditer((ROOT / "docs" / f"{page}.md").read_text()):
        yield found[1], found[2], found[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that getting-started makes."""
    well(*NNBUILD, "new", tmp_path / "digits")
    return tmp_path / "digits"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """nnbuild, scons and Python as they are where nnbuild is installed."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, words in {"nnbuild": "-m nnbuild", "scons": "-m SCons", "python": "", "python3": ""}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" {words} "$@"\n')
        path.chmod(0o755)
    return folder


@pytest.mark.turns(6)
@pytest.mark.parametrize("page", NEEDED)
def test_a_page(page: str, project: Path, programs: Path) -> None:
    if page == "rust":
        needs_rust()
    for tool in NEEDED[page]:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    lines = ["set -e"]
    for file, language, text in pieces(page):
        if file is not None:
            (project / file).parent.mkdir(parents=True, exist_ok=True)
            (project / file).write_text(text)
        elif language == "sh":
            lines.append(text)
    script = project.parent / "page.sh"
    script.write_text("\n".join(lines))
    done = start("sh", script, folder=project, env={"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"})
    assert done.status == 0, done.text


@pytest.mark.turns(2)
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
def test_the_program_of_the_c_api_fits_every_format(form: str, project: Path) -> None:
    """It writes and reads floats whichever numbers the model computes in."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source = next(text for file, _, text in pieces("c-api") if file == "main.c")
    (project / "main.c").write_text(source)
    options = () if form == "float" else ("--quantize", form, "--calibrate", project / "calibration.npz")
    well(*NNBUILD, "compile", project / "mnist.h5", *options, "-o", project / "model")
    files = sorted((project / "model").glob("*.c"))
    flags = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", project / "model")
    well("gcc", *flags, project / "main.c", *files, "-o", project / "app")
    assert len(start(project / "app").text.splitlines()) == 10
