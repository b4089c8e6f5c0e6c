"""`[memory] code`: the model's code where it does not wait for flash."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find, find_unchecked
from nnbuild.bound.image import read_image
from nnbuild.cli import main
from nnbuild.cycles.part import part_of
from tests.boards.conftest import needs_tools

pytestmark = pytest.mark.slow

MODEL = [str(EXAMPLE / "mnist.h5"), "--quantize", "int8"]


def table(folder: Path, memory: str, base: str = "stm32f405") -> str:
    file = folder / "mine.toml"
    file.write_text(f'extends = "{base}"\nsummary = "mine"\ntested_on = "build only"\n[memory]\n{memory}\n')
    return str(file)


IN_RAM = 'code = "ram"'
APART = 'code = "fast"\nram = { origin = 0x2000_0000, length = 65_536 }\nfast = { origin = 0x2001_0000, length = %d }'


@pytest.mark.emulator
def test_the_example_computes_from_ram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = table(tmp_path, IN_RAM)
    needs_tools(find(board))
    samples = tmp_path / "samples.npz"
    np.savez(samples, x=np.load(EXAMPLE / "samples.npz")["x"][:2])
    assert main(["check", *MODEL, "--board", board, "--inputs", str(samples)]) == 0
    assert "PASS: 2 samples" in capsys.readouterr().out


def test_code_lies_there_and_is_stored_in_flash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = table(tmp_path, APART % 65_536)
    needs_tools(find(board))
    assert main(["build", *MODEL, "--board", board, "-o", str(tmp_path / "out")]) == 0
    image = read_image(tmp_path / "out" / "program.elf")
    own = {name for name in image.functions if name.startswith("mnist_0")}
    assert own and all(0x2001_0000 <= image.functions[name] < 0x2002_0000 for name in own)
    assert 0x0800_0000 <= image.functions["main"] < 0x0810_0000
    start, load = image.symbol("nn_fast_begin"), image.symbol("nn_fast_load")
    assert start == 0x2001_0000 and load is not None and 0x0800_0000 <= load < 0x0810_0000


def test_a_memory_that_is_too_small_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = table(tmp_path, APART % 2_048)
    needs_tools(find(board))
    assert main(["build", *MODEL, "--board", board, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "larger than the memory 'fast' of the board." in said
    assert "Leave [memory] code out of the board's table" in said


@pytest.mark.parametrize(
    ("memory", "base", "cause"),
    [
        (
            'code = "itcm"',
            "stm32f405",
            "[memory] code = 'itcm', but there is no such memory: use one of 'ram', 'ccm'.",
        ),
        ('code = "flash"', "stm32f405", "[memory] code = 'flash' is where code lies by default: leave it out."),
        ('code = "ccm"', "stm32f405", "[memory] code = 'ccm', from which the part executes nothing."),
        ('code = "ram"', "rv32", "[memory] code = 'ram' is for Cortex-M: leave it out."),
        ("code = 1", "stm32f405", "its [memory] code = 1 is not valid."),
    ],
)
def test_what_cannot_be(memory: str, base: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = table(tmp_path, memory, base)
    with pytest.raises(UsageError) as refused:
        find(board)
    assert cause in str(refused.value)
    assert main(["board", "check", board]) != 0
    assert cause in " ".join((told := capsys.readouterr()).out.split() + told.err.split())


def test_code_beside_the_data_takes_a_wider_band(tmp_path: Path) -> None:
    """Where a bus brings both, no manual says what waits for what."""
    assert part_of(find_unchecked(table(tmp_path, IN_RAM))).error(True) == (-5, 30)
    assert part_of(find(table(tmp_path, 'code = "ccm"', "nucleo-g474re"))).error(False) == (-3, 3)


@pytest.mark.turns(3)
def test_no_code_waits_for_flash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left are the steps' entries, and constants."""
    found = {}
    for name, memory in (("flash", ""), ("ccm", 'code = "ccm"')):
        board = table(tmp_path, memory, "nucleo-g474re")
        needs_tools(find(board))
        told = tmp_path / "cycles.json"
        assert main(["profile", *MODEL, "--board", board, "--cycles", "--json", str(told)]) == 0
        found[name] = json.loads(told.read_text())
    assert found["ccm"]["stalls"]["flash_code"] < 0.05 * found["flash"]["stalls"]["flash_code"]
    assert found["ccm"]["cycles"] < found["flash"]["cycles"]
