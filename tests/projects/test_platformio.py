"""A model in a PlatformIO build, with a platform on this disk."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.docs.test_examples import pieces
from tests.projects.conftest import PlatformIo
from tests.support.running import NNBUILD, Done, printed, well

pytestmark = pytest.mark.projects


class Project:
    """A project that `nnbuild new` made, for the platform on this disk."""

    def __init__(self, platformio: PlatformIo, folder: Path) -> None:
        self.platformio = platformio
        platformio.installed.well(f"nnbuild new '{folder.name}' --build platformio", folder.parent)
        self.folder = folder
        self.ini = folder / "platformio.ini"
        self.change("platform = native", f"platform = symlink://{platformio.platform}")

    def change(self, before: str, after: str) -> None:
        text = self.ini.read_text()
        assert before in text
        self.ini.write_text(text.replace(before, after))

    def run(self, *words: str) -> Done:
        return self.platformio.installed.start(" ".join(["pio run", *words]), self.folder)

    def did(self, *words: str) -> list[str]:
        """What a build that ends well did."""
        done = self.run(*words)
        assert done.status == 0, done.text
        return re.findall(r"^(?:nnbuild compile|Compiling|Linking) .*$", done.text, re.MULTILINE)

    @property
    def built(self) -> Path:
        return self.folder / ".pio" / "build" / "linux"


@pytest.fixture
def project(platformio: PlatformIo, tmp_path: Path) -> Project:
    return Project(platformio, tmp_path / "mes chiffres é")


@pytest.mark.full
def test_what_is_built_again(project: Project) -> None:
    """One story, because every part of it begins where the last one ended."""
    first = project.did("-j", "4")
    assert first[0] == "nnbuild compile mnist.h5"
    assert "It is: eight" in well(project.built / "program")
    assert project.did() == [], "nothing has changed"
    os.utime(project.folder / "mnist.h5")
    assert project.did() == [], "only times have changed"

    project.change("= int8", "= int16")
    again = project.did()
    assert again[0] == "nnbuild compile mnist.h5"
    assert any("mnist_kernels" in step for step in again)
    assert project.did() == []

    assert project.run("-t", "clean").status == 0
    assert not (project.built / "nnbuild").exists()
    assert len(project.did()) == len(first)


@pytest.mark.turns(4)
def test_the_c_is_that_of_the_command_line(project: Project, tmp_path: Path) -> None:
    project.did()
    options = ["--quantize", "int8", "--calibrate", "calibration.npz", "--labels", "labels.txt"]
    well(*NNBUILD, "compile", "mnist.h5", *options, "-o", tmp_path / "here", folder=project.folder)
    assert printed(project.built / "nnbuild", "mnist") == printed(tmp_path / "here", "mnist")


@pytest.mark.turns(4)
def test_the_lines_of_the_readme(project: Project) -> None:
    for line in re.findall(r"^```sh\n(.*?)^```", (project.folder / "README.md").read_text(), re.M | re.S)[
        0
    ].splitlines():
        text = project.platformio.installed.well(line, project.folder)
    assert "PASS: 200 samples" in text


@pytest.mark.turns(3)
def test_weights_that_the_assembler_takes_in(project: Project) -> None:
    project.ini.write_text(project.ini.read_text() + "\ncustom_nnbuild_weights = binary\n")
    assert any("mnist_weights" in step for step in project.did())
    assert (project.built / "nnbuild" / "mnist_weights.bin").is_file()
    assert "It is: eight" in well(project.built / "program")


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("custom_nnbuild_model = mnist.h5\n", "", "nnbuild: platformio.ini does not name a model."),
        ("mnist.h5", "absent.h5", "absent.h5: "),
        (
            "_quantize",
            "_quantise",
            "nnbuild: unknown option custom_nnbuild_quantise. `nnbuild docs platformio` lists the options.",
        ),
        ("= int8", "= int8\ncustom_nnbuild_isa = armv9", "nnbuild: isa 'armv9': there is none."),
        ("= int8", "= int4", "argument --quantize: invalid choice: 'int4'"),
    ],
)
def test_what_cannot_be_built(project: Project, before: str, after: str, text: str) -> None:
    project.change(before, after)
    done = project.run()
    assert done.status != 0
    assert text in done.text
    assert "Traceback" not in done.text


def test_a_broken_model(project: Project) -> None:
    (project.folder / "mnist.h5").write_bytes(b"hello")
    done = project.run()
    assert done.status != 0
    assert "mnist.h5: it is not a model: neither HDF5, nor a Keras zip, nor TensorFlow Lite" in done.text
    assert not list(project.built.rglob("*.c"))


def test_the_script_is_found_where_the_command_line_says(platformio: PlatformIo, tmp_path: Path) -> None:
    path = Path(platformio.installed.well("nnbuild --platformio-script", tmp_path).strip())
    assert path.name == "nnbuild_platformio.py"
    assert path.is_file()


@pytest.mark.turns(3)
def test_the_page(platformio: PlatformIo, tmp_path: Path) -> None:
    """Its files as they are printed, but for the platform."""
    platformio.installed.well("nnbuild new made", tmp_path)
    project = tmp_path / "made"
    for file, language, text in pieces("platformio"):
        if file is not None:
            own = text.replace("platform = native", f"platform = symlink://{platformio.platform}")
            (project / file).write_text(own)
        elif language == "sh":
            said = platformio.installed.well(text, project)
    assert "It is: eight" in said
