"""The campaign over boards and options in short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import board_campaign
from benchmarks.ledger import append
from nnbuild.board.tables import find
from tests.boards.conftest import needs_tools

SCRIPT = Path(board_campaign.__file__)
FIRST = str(10**6)


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *words, "--from", FIRST], capture_output=True, text=True)


@pytest.mark.emulator
@pytest.mark.oracle
@pytest.mark.parametrize(
    "trials", [pytest.param(4, marks=pytest.mark.turns(4)), pytest.param(150, marks=pytest.mark.full)]
)
def test_random_options(trials: int, tmp_path: Path) -> None:
    pytest.importorskip("keras")
    boards = [*board_campaign.BARE, *board_campaign.CORES]
    for board in boards:
        needs_tools(find(board))
    done = ran(str(tmp_path / "ledger.jsonl"), "--boards", *boards, "--trials", str(trials))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{trials} commands: ")


def test_a_seed_always_gives_the_same_command() -> None:
    assert str(board_campaign.trial(0)) == (
        "onnx 0 --board stm32f100 --quantize int8 --stream auto --device ./examples/made-up-device "
        "--calibration percentile"
    )


def test_what_a_command_said() -> None:
    judged = board_campaign.judged
    assert judged(0, "PASS", "") == "right"
    assert judged(1, "FAIL", "") == "wrong: FAIL"
    assert judged(2, "", "error: no") == "refused: error: no"
    assert judged(2, "", "Please report this model").startswith("crashed")
    assert judged(3, "", "the program died").startswith("crashed")
    assert judged(1, "", "Traceback (most recent call last)").startswith("crashed")


def test_the_summary_counts_and_names_what_is_wrong(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    for seed, said in enumerate(("right", "refused: no\nits end", "wrong: FAIL")):
        append(ledger, {"seed": seed, "trial": f"keras {seed}", "said": said, "seconds": 1.0, "commit": "abc"})
    done = ran(str(ledger), "--summary")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "3 commands: 1 right, 1 refused, 1 wrong",
        "1 its end",
        "2: keras 2: wrong: FAIL",
    ]
