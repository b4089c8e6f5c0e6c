"""nnbuild bound, and the budget of instructions that other commands hold programs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnbuild import api
from nnbuild.backends.run_bound import run_bound
from nnbuild.base.errors import UsageError
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find
from tests.cli.conftest import Nnbuild
from tests.frontend.keras_files import put

NO_BOUND = (
    "a bound on instructions is proved only for programs of boards with a Cortex-M0, M3, M4 or M7. "
    "Name such a board (all boards: nnbuild boards), or no limit."
)
BOARD = ("--board", "mps2-an386", "--quantize", "int8")


@pytest.mark.slow
def test_a_model(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("bound", model, *BOARD, "--facts", tmp_path / "facts", "--json", tmp_path / "bound.json")
    assert said.status == 0
    found = json.loads((tmp_path / "bound.json").read_text())
    most = found["instructions"]
    assert f"at most {most:,} instructions for every input" in said.out
    assert f"at most {found['cycles']:,} cycles on a Cortex-M4 at zero wait states" in said.out
    assert {path.name for path in (tmp_path / "facts").iterdir()} == {"program.elf", "program.ff", "program.ais"}
    again = nnbuild("bound", tmp_path / "facts" / "program.elf", "--json")
    assert (again.json()["instructions"], again.json()["cycles"]) == (most, None)
    inner = nnbuild("bound", tmp_path / "facts" / "program.elf", "--entry", "nn_target_steps", "--json").json()
    assert inner["instructions"] == 2
    assert nnbuild("build", model, *BOARD, "-o", tmp_path / "a", "--max-instructions", most).status == 0
    program = tmp_path / "a" / "program.elf"
    said = nnbuild("bound", program, "--max-instructions", most - 1)
    assert (said.status, said.out) == (1, "")
    assert f"{most:,} instructions, 1 more than the {most - 1:,} allowed; most of them, " in said.err
    said = nnbuild("bound", EXAMPLE / "mnist.h5", *BOARD, "--program", program)
    assert said.status == 2 and "It contains another model, or was built with other options." in said.err
    said = nnbuild("check", model, *BOARD, "--program", program, "--max-instructions", most - 1)
    assert said.status == 1
    assert "1 more than" in said.err
    said = nnbuild("build", model, *BOARD, "-o", tmp_path / "a", "--max-instructions", most - 1)
    assert said.status == 1 and "1 more than" in said.err
    left = {path.name for path in (tmp_path / "a").iterdir()}
    assert not left & {"program.elf", "program.bin", "program.hex"}, "nobody can flash what was refused"


@pytest.mark.parametrize("board", ["linux", "rv32", "mps3-an547"])
@pytest.mark.parametrize("command", ["build", "check", "profile", "bound", "compile"])
def test_a_budget_where_nothing_can_be_bounded(
    nnbuild: Nnbuild, model: Path, board: str, command: str, tmp_path: Path
) -> None:
    """Refused before the model is read, and anything written."""
    folder = ["-o", tmp_path / "out"] if command in ("build", "compile") else []
    said = nnbuild(command, tmp_path / "later.h5", "--board", board, "--max-instructions", 5, *folder)
    assert (said.status, said.err) == (2, f"nnbuild: board {board!r}: {NO_BOUND}\n")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="proved only for programs of boards with a Cortex-M"):
        api.compile(model, board=board, max_instructions=5)


def test_a_budget_of_ones_own_program(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    words = ("-o", tmp_path, "--max-instructions", 5, "--application", "main.c")
    said = nnbuild("build", model, *BOARD, *words)
    assert said.status == 2 and "of the program that serves the model, not of your own. Leave it out" in said.err


def test_what_cannot_be_bounded(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    for board, program in (("linux", "program"), ("mps3-an547", "program.elf")):
        given = put(tmp_path / program, b"")
        with pytest.raises(UsageError, match="only for programs of boards with a Cortex-M0, M3, M4 or M7"):
            run_bound(find(board), given)
    said = nnbuild("bound", model, *BOARD, "--entry", "f")
    assert said.status == 2
    assert "it applies to a linked program only" in said.err
    (tmp_path / "x.elf").write_bytes(b"\x7fELF")
    assert nnbuild("bound", tmp_path / "x.elf").status == 2


@pytest.mark.parametrize("word", ["0", "-1", "many", "1e6", "²"])
def test_a_budget_is_a_number(nnbuild: Nnbuild, model: Path, word: str) -> None:
    assert nnbuild("bound", model, *BOARD, f"--max-instructions={word}").status == 2


@pytest.mark.parametrize("value", ["0", "-5", '"many"', "1.5", "true"])
def test_the_budget_of_a_board(tmp_path: Path, value: str) -> None:
    text = 'extends = "microbit"\nsummary = "mine"\ntested_on = "build only"\n[audit]\n'
    table = tmp_path / "mine.toml"
    table.write_text(f"{text}instructions = 3_000_000\n")
    assert find(str(table)).instruction_budget == 3_000_000
    table.write_text(f"{text}instructions = {value}\n")
    with pytest.raises(UsageError, match="is not a number of instructions"):
        find(str(table))
