"""Big-endian processors: numbers cross the link and lie in a .bin in the right order, or the compiler refuses them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.cli import main
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from tests.frontend.keras_files import h5_bytes, put, small

COMPILER = "powerpc-linux-gnu-gcc"
needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path / "small.h5", h5_bytes(*small()))


@pytest.mark.turns(3)
@pytest.mark.emulator
@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-ppc") is None, reason="qemu-ppc is not installed")
@pytest.mark.parametrize("weights", ["array", "binary"])
@pytest.mark.parametrize("quantize", ["float", "int8", "int16"])
def test_a_check_passes(quantize: str, weights: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bit for bit in integers; and instructions are counted."""
    words = ["check", str(model), "--board", "linux-ppc", "--quantize", quantize, "--weights", weights]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "PASS" in said
    if quantize != "float":
        assert "0 of" in said
    cost = next(line for line in said.splitlines() if line.startswith("one run"))
    assert 50 < int(cost.split()[2].replace(",", "")) < 50_000, "in the order of the PC's, it would be 2 ** 56 and more"


@pytest.mark.turns(4)
@pytest.mark.emulator
@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-ppc") is None, reason="qemu-ppc is not installed")
@pytest.mark.parametrize("form", ["float", "int8"])
def test_registers_saved_by_the_compilers_library_are_bounded(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Code of few bytes calls functions for it, whose stack no table gives."""
    digits = Path(__file__).resolve().parents[2] / "examples/mnist/mnist.h5"
    words = ["check", str(digits), "--board", "linux-ppc", "--quantize", form, "--optimize", "size"]
    assert main(words) == 0
    assert "PASS" in capsys.readouterr().out


@needs_compiler
@pytest.mark.parametrize(("board", "compiler"), [("linux", COMPILER), ("linux-ppc", "gcc")])
def test_constants_of_the_other_order_are_refused(board: str, compiler: str, model: Path, tmp_path: Path) -> None:
    compile_model(Options(model, board=board, weights="binary")).artifact.write(tmp_path / "c")
    done = subprocess.run(
        [compiler, "-c", "small_weights.S", "-o", "weights.o"], cwd=tmp_path / "c", capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "-endian: use --weights array, or a board table with byte_order = " in done.stderr


def test_a_byte_order_is_one_of_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "mine.toml"
    table.write_text('extends = "linux-ppc"\nsummary = "mine"\nbyte_order = "middle"\n')
    assert main(["board", "check", str(table)]) != 0
    assert '"little" or "big"' in capsys.readouterr().err
