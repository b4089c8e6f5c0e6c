"""The SConstruct that comes with nnbuild: what it builds, and what it builds again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from nnbuild.cli import main
from tests.scons.conftest import ROOT, scons, write_model

pytestmark = pytest.mark.slow


@pytest.mark.turns(4)
def test_the_example_is_the_default(checkout: Path) -> None:
    shutil.copytree(ROOT / "examples" / "mnist", checkout / "examples" / "mnist")
    said = scons(checkout, "-Q")
    assert said.status == 0, said.err
    assert said.did("nnbuild compile") == ["nnbuild compile examples/mnist/mnist.h5"]
    assert said.did("nnbuild check") == ["nnbuild check examples/mnist/mnist.h5"]
    assert "PASS: 200 samples" in said.out
    built = checkout / "build" / "linux" / "mnist"
    assert json.loads((built / "check.json").read_text())["verdict"] == "pass"
    assert json.loads((built / "audit.json").read_text())["clean"] is True


@pytest.mark.turns(4)
def test_what_is_built_again(checkout: Path) -> None:
    """One story, because every part of it begins where the last one ended."""
    arguments = ("-Q", "model=small.h5", "program")
    first = scons(checkout, *arguments)
    assert first.status == 0, first.err
    assert first.did("nnbuild compile") == ["nnbuild compile small.h5"]
    compiled = len(first.did("gcc"))
    assert compiled > 5

    def again(*more: str) -> list[str]:
        said = scons(checkout, *arguments, *more)
        assert said.status == 0, said.err
        return said.steps

    assert again() == [], "nothing has changed"
    for path in (*checkout.glob("*.h5"), *checkout.glob("nnbuild/**/*.py"), *checkout.glob("firmware/**/*.c")):
        os.utime(path)
    assert again() == [], "only times have changed"

    # An option: the model is printed again, and as the C is the same, nothing after it is done.
    assert again("threads=2") == ["nnbuild compile small.h5"]
    assert again("threads=2") == []

    # The generator: the same.
    with (checkout / "nnbuild" / "emit" / "model.py").open("a") as file:
        file.write("# a remark\n")
    assert again("threads=2") == ["nnbuild compile small.h5"]

    # The model: its weights are compiled, and the target with the new hash; its kernels are not.
    write_model(checkout / "small.h5", 2.0)
    steps = again("threads=2")
    assert "nnbuild compile small.h5" in steps
    assert "gcc build/linux/small/small_weights.c" in steps
    assert len(steps) < compiled + 1
    assert "gcc build/linux/small/program" in steps
    assert not [step for step in steps if "nn_frame" in step]
    assert again("threads=2") == []


@pytest.mark.turns(4)
@pytest.mark.slow
def test_two_models_lie_side_by_side(checkout: Path) -> None:
    for name in ("one", "two"):
        said = scons(checkout, "-Q", "model=small.h5", f"name={name}", "program")
        assert said.status == 0, said.err
    built = checkout / "build" / "linux"
    assert (built / "one" / "program").is_file()
    assert (built / "two" / "program").is_file()
    assert scons(checkout, "-Q", "model=small.h5", "name=one", "program").steps == []


@pytest.mark.turns(3)
def test_a_board_without_an_emulator(checkout: Path) -> None:
    """Is built and audited; the check waits for the real one. Options of layers come as a text."""
    said = scons(checkout, "-Q", "board=pico", "model=small.h5", "quantize=int8", "keep=dense=int16", "io=float")
    assert said.status == 0, said.err
    assert said.out.startswith("pico: no emulator has this board. With the real one: scons … flash check port=")
    assert not said.did("nnbuild check")
    built = checkout / "build" / "pico" / "small"
    assert json.loads((built / "audit.json").read_text())["clean"] is True
    assert "int16_t" in (built / "small_kernels.c").read_text()
    assert "float" in (built / "small.h").read_text()


@pytest.mark.turns(3)
def test_size(checkout: Path) -> None:
    said = scons(checkout, "-Q", "model=small.h5", "size")
    assert said.status == 0, said.err
    assert "memory     flash_code" in said.out


@pytest.mark.turns(3)
def test_from_another_folder(checkout: Path, tmp_path: Path) -> None:
    said = scons(tmp_path, "-Q", "-C", str(checkout), "model=small.h5", "program")
    assert said.status == 0, said.err
    assert (checkout / "build" / "linux" / "small" / "program").is_file()


@pytest.mark.turns(3)
def test_help_and_boards(checkout: Path) -> None:
    for word in ("help", "-h"):
        said = scons(checkout, "-Q", word)
        assert said.status == 0
        for variable in ("board", "model", "quantize", "optimize", "inputs", "port", "name"):
            assert f"\n{variable}: " in said.out
        assert "default: examples/mnist/mnist.h5" in said.out
    said = scons(checkout, "-Q", "boards")
    assert said.status == 0
    assert "linux, x86" in said.out
    assert not (checkout / "build").exists()


def test_a_misspelt_variable(checkout: Path) -> None:
    said = scons(checkout, "-Q", "modle=small.h5")
    assert said.status == 2
    wanted = "nnbuild: there is no variable modle=; did you mean model=? All of them: scons help\n"
    assert said.err.endswith(wanted)
    assert not (checkout / "build").exists()


def test_a_variable_of_a_new_project(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "project"), "--board", "mps2-an386"]) == 0
    said = scons(tmp_path / "project", "-Q", "prot=/dev/ttyUSB0", "-n")
    wanted = "nnbuild: there is no variable prot=; did you mean port=? board and options stand in SConstruct.\n"
    assert (said.status, said.err) == (2, wanted)


def test_a_misspelt_board(checkout: Path) -> None:
    said = scons(checkout, "-Q", "model=small.h5", "board=lunix")
    assert said.status == 2
    assert "nnbuild: board 'lunix': there is no such board. Did you mean linux" in said.err


def test_a_value_that_is_none(checkout: Path) -> None:
    said = scons(checkout, "-Q", "model=small.h5", "optimize=beauty")
    assert said.status == 2
    assert "Invalid value for enum variable 'optimize': 'beauty'" in said.err + said.out


def test_a_broken_model(checkout: Path) -> None:
    (checkout / "broken.h5").write_bytes((checkout / "small.h5").read_bytes()[:700])
    said = scons(checkout, "-Q", "model=broken.h5")
    assert said.status == 2
    assert "nnbuild: broken.h5: " in said.err
    assert "Traceback" not in said.err + said.out
    assert said.did("gcc") == []
    assert not list((checkout / "build").rglob("*.c"))


@pytest.mark.turns(3)
def test_a_missed_gate_fails_the_build(checkout: Path) -> None:
    import numpy as np

    x = np.zeros((2, 4), np.float32)
    np.savez(checkout / "samples.npz", x=x, y=np.full((2, 3), 9, np.float32))
    said = scons(checkout, "-Q", "model=small.h5")
    assert said.status != 0
    assert "FAIL: 1 of " in said.out
    assert "error against the golden output" in said.out
