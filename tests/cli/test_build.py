"""nnbuild build, and what other builds ask of the command line: stamps, dependency files, places."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from threading import Event, Thread

import pytest

from nnbuild.backends import build as building
from nnbuild.base.errors import CheckFailed
from nnbuild.base.files import alone_in, write_together
from nnbuild.base.paths import CMAKE, PLATFORMIO, generator_files
from tests.cli.conftest import Nnbuild
from tests.support.running import NNBUILD, ROOT, files_of, start

pytestmark = pytest.mark.slow


def test_build(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("build", model, "-o", tmp_path / "out", "--json", "--quantize", "int8")
    facts = said.json()
    assert facts["board"] == "linux"
    assert Path(facts["program"]).is_file()
    assert facts["memory"]["arena"] > 0
    dry = nnbuild("build", model, "-o", tmp_path / "other", "--json", "--dry-run").json()
    assert dry == {"board": "linux", "program": (tmp_path / "other" / "program").as_posix(), "images": []}
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("problem", [CheckFailed("audit", "it needs cexpf.", "Leave it out."), KeyboardInterrupt()])
def test_a_failed_build_leaves_no_program(
    problem: BaseException, nnbuild: Nnbuild, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one of before, which nobody should take for that of the files beside it."""
    words = ("build", model, "-o", tmp_path / "out")
    assert nnbuild(*words).status == 0
    monkeypatch.setattr(building, "audit_model", lambda *_: _raised(problem))
    assert nnbuild(*words, "--quantize", "int8").status != 0
    assert not (tmp_path / "out" / "program").exists()


def _raised(problem: BaseException) -> None:
    raise problem


def test_interrupted_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes
    monkeypatch.setattr(
        Path, "write_bytes", lambda path, text: write(path, text) if text == b"a" else _raised(KeyboardInterrupt())
    )
    with pytest.raises(KeyboardInterrupt):
        write_together({tmp_path / "a": b"a", tmp_path / "b": b"b"})
    assert not list(tmp_path.iterdir())


def test_builds_into_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    done: list[str] = []
    told = Event()

    def second() -> None:
        with alone_in(tmp_path / "out", lambda text: (done.append(text), told.set())):
            done.append("second")

    other = Thread(target=second)
    with alone_in(tmp_path / "out", done.append):
        other.start()
        assert told.wait(60)
        done.append("first")
    other.join()
    assert done == [f"waiting for another command that writes to {tmp_path / 'out'}", "first", "second"]


def test_a_stream_that_was_built_is_checked(nnbuild: Nnbuild, tmp_path: Path) -> None:
    """The step of a stream depends on the instruction set, which must be the program's."""
    keras = pytest.importorskip("keras")
    layers, x = keras.layers, keras.Input((49, 40))
    y = layers.SeparableConv1D(16, 3)(layers.Conv1D(12, 5, strides=2, activation="relu")(x))
    y = layers.Dense(4, activation="softmax")(layers.GlobalAveragePooling1D()(y))
    model, words = tmp_path / "net.keras", ("--quantize", "int8", "--stream", "auto")
    keras.Model(x, y).save(model)
    program = nnbuild("build", model, *words, "-o", tmp_path / "out", "--json").json()["program"]
    assert "PASS" in nnbuild("check", model, *words, "--program", program).out


def test_a_file_of_somebody_else_s_is_not_written_over(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    mine = tmp_path / f"{model.stem}.c"
    mine.write_text("int mine;\n")
    said = nnbuild("build", model, "-o", tmp_path)
    assert said.status == 2 and "nnbuild did not print it" in said.err
    assert mine.read_text() == "int mine;\n"


@pytest.mark.parametrize(
    ("output", "name"), [("library", "lib/lib{}.a"), ("library", "src/{}.o"), ("cmsis-pack", "nnbuild.{}.0.1.0.pack")]
)
def test_nor_is_a_binary(output: str, name: str, nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    mine = tmp_path / name.format(model.stem)
    mine.parent.mkdir(exist_ok=True)
    mine.write_bytes(b"mine")
    said = nnbuild("compile", model, "--output", output, "-o", tmp_path)
    assert said.status == 2 and "nnbuild did not make it" in said.err
    assert mine.read_bytes() == b"mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path not in (mine, model)] == []
    mine.unlink()
    assert [nnbuild("compile", model, "--output", output, "-o", tmp_path).status for _ in range(2)] == [0, 0]


def test_what_a_dry_run_says_of_firmware(nnbuild: Nnbuild, tmp_path: Path) -> None:
    """The model is not looked at, so it need not be there yet."""
    facts = nnbuild("build", "later.h5", "--board", "stm32", "-o", tmp_path, "--dry-run", "--json").json()
    assert facts["board"] == "stm32f405"
    assert [Path(name).name for name in (facts["program"], *facts["images"])] == [
        "program.elf",
        "program.bin",
        "program.hex",
    ]


def test_a_stamp_and_its_dependencies(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    stamp, depfile = tmp_path / "stamp", tmp_path / "deps.d"
    for command in ("compile", "build"):
        where = ["-o", tmp_path / command, "--stamp", stamp, "--depfile", depfile]
        assert nnbuild(command, model, *where).status == 0
        target, _, listed = depfile.read_text().partition(":")
        assert target == str(stamp)
        assert str(model) in listed
        for path in generator_files():
            assert str(path) in listed
        stamp.unlink()


def test_dependencies_without_a_stamp(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    """The target is a file that is written."""
    odd, depfile = model.rename(tmp_path / "KWS-v1.2.h5"), tmp_path / "deps.d"
    assert nnbuild("compile", odd, "-o", tmp_path / "out", "--depfile", depfile).status == 0
    assert Path(depfile.read_text().partition(":")[0]).is_file()


def test_what_can_change_the_c_is_listed() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in generator_files()}
    wanted = {
        "nnbuild/jobs/pipeline.py",
        "boards/linux/board.toml",
        "firmware/libm/nn_expf.c",
        "nnbuild/templates/rust/lib.rs",
    }
    assert wanted <= names
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.parametrize(("option", "path"), [("--cmakedir", CMAKE), ("--platformio-script", PLATFORMIO)])
def test_places(nnbuild: Nnbuild, option: str, path: Path) -> None:
    """One line, however long it is."""
    said = nnbuild(option)
    assert (said.status, said.out) == (0, f"{path.as_posix()}\n")
    assert path.exists()


def test_several_at_once_into_one_folder(model: Path, tmp_path: Path) -> None:
    """Each writes the same, and none sees half a file of another's."""
    alone = tmp_path / "alone"
    assert start(*NNBUILD, "compile", model, "-o", alone).status == 0
    together = tmp_path / "together"
    command = [*NNBUILD, "compile", str(model), "-o", str(together)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert files_of(together) == files_of(alone)


def test_no_archiver(nnbuild: Nnbuild, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcc").symlink_to(shutil.which("gcc") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    said = nnbuild("compile", "--output", "library", model, "-o", tmp_path / "out")
    assert (said.status, said.err) == (3, "nnbuild: libsmall.a: ar is not installed. apt install binutils\n")
    assert not (tmp_path / "out").exists()


def test_no_compiler(model: Path, tmp_path: Path) -> None:
    """Nothing is written that lacks the library."""
    for command in (["build"], ["compile", "--output", "library"]):
        done = start(*NNBUILD, *command, model, "-o", tmp_path / "out", env={"PATH": str(tmp_path)})
        cause = "board 'linux': none of its compilers is installed (gcc, clang). apt install gcc, or apt install clang"
        assert (done.status, done.text.strip()) == (3, f"nnbuild: {cause}")
        assert command == ["build"] or not (tmp_path / "out").exists()
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_the_facts_of_a_compilation(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    assert nnbuild("compile", model, "-o", tmp_path / "out", "--json", tmp_path / "facts.json").status == 0
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert (facts["name"], facts["form"]) == ("small", "array")
    assert facts["files"] == sorted(path.name for path in (tmp_path / "out").iterdir())
