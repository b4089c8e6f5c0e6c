"""`nnbuild profile --cycles`, and what a board's table may say of its flash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import BOARDS, EXAMPLE
from nnbuild.board.tables import find
from nnbuild.cli import main
from nnbuild.cycles.part import part_of


@pytest.mark.turns(3)
@pytest.mark.slow
def test_the_example_on_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tmp_path / "cycles.json"
    command = ["profile", str(EXAMPLE / "mnist.h5"), "--quantize", "int8", "--board", "stm32f405", "--cycles"]
    assert main([*command, "--json", str(found)]) == 0
    text, facts = capsys.readouterr().out, json.loads(found.read_text())
    assert "cycles of a Cortex-M4, modelled; -5 to +15 %" in text
    assert facts["cycles"] == facts["instructions"] + sum(facts["stalls"].values())
    assert facts["cycles"] == sum(layer["cycles"] for layer in facts["layers"])
    assert facts["milliseconds"] == pytest.approx(facts["cycles"] / 168e3)
    assert facts["stalls"]["flash_data"] > 0
    assert "of the parameters' " in text and "cycles gained" in text
    stored = {layer["name"]: layer for layer in facts["stored"]}
    assert all(layer["stored"] >= layer["parameters"] > 0 for layer in stored.values())
    assert "softmax" not in stored and min(layer["cycles_gained"] for layer in stored.values()) >= 0
    low, high = facts["milliseconds_error"]
    assert low < 0 < high


def test_cycles_are_modelled_or_measured(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["profile", str(EXAMPLE / "mnist.h5"), "--board", "stm32", "--cycles", "--port", "/dev/ttyACM0"]
    assert main(command) == 2
    assert "it models a processor; at a port, cycles are measured." in capsys.readouterr().err


def test_a_core_without_rules_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(EXAMPLE / "mnist.h5"), "--board", "rv32", "--cycles"]) == 2
    assert "cycles are modelled only for boards with a Cortex-M0" in capsys.readouterr().err


def test_every_board_with_a_known_core_is_a_part() -> None:
    for file in BOARDS.glob("*/board.toml"):
        if "abstract" not in file.read_text():
            board = find(file.parent.name)
            if board.core is not None and board.core.startswith("cortex-m"):
                assert part_of(board).hertz >= 1_000_000


def _board(folder: Path, text: str) -> Path:
    file = folder / "mine" / "board.toml"
    file.parent.mkdir()
    told = 'extends = "stm32f405"\nsummary = "mine (168 MHz)"\ntested_on = "build only"\n'
    file.write_text(f"{told}[flash.speed]\n{text}\n")
    return file


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("latency = 5", "its [flash.speed] has no latency."),
        ("wait = -1", "its [flash.speed] wait = -1 is not valid."),
        ("prefetch = 1", "its [flash.speed] prefetch = 1 is not valid."),
        ("error = [5]", "its [flash.speed] error = [5] is not valid."),
        ("line = 24", "its flash lines of 24 bytes are not a multiple of reads of 16."),
    ],
)
def test_flash_that_cannot_be(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(UsageError) as refused:
        find(str(_board(tmp_path, text)))
    assert cause in str(refused.value)


def test_wait_states_are_those_of_the_start_code(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        find(str(_board(tmp_path, "wait = 7")))
    assert "wait = 7, but its start code sets 5 wait states" in str(refused.value)
