"""A fixed run of the importer's fuzzer, in processes of their own so that crashes of libraries count."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ledger import rows
from tests.fuzz import campaign

REPO = Path(__file__).resolve().parents[2]


def fuzz(first: int, cases: int, seed: int = 1, *words: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz.importer", "--first", str(first), "--cases", str(cases), *words]
    result = subprocess.run(
        [*command, "--seed", str(seed)], cwd=REPO, capture_output=True, text=True, timeout=3600, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.turns(2)
@pytest.mark.fuzz
@pytest.mark.parametrize("first", [0, 250])
def test_spoilt_files_are_refused_politely(first: int) -> None:
    report = fuzz(first, 250)
    passed = re.search(r"'past the container': (\d+)", report)
    assert passed is not None and int(passed[1]) >= 125, report


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.oracle
def test_spoilt_files_of_every_layer_are_refused_politely() -> None:
    report = fuzz(0, 600, 1, "--layers")
    passed = re.search(r"'past the container': (\d+)", report)
    assert passed is not None and int(passed[1]) >= 300, report


@pytest.mark.fuzz
def test_campaign_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PART", 20)
    monkeypatch.setattr(campaign, "SHARES", ("keras", "tflite"))
    ledger = tmp_path / "ledger.jsonl"
    for cases in (20, 40, 40):
        monkeypatch.setattr(sys, "argv", ["campaign", str(ledger), "--cases", str(cases)])
        assert campaign.main() == 0
    assert [(row["fuzzer"], row["cases"], row["bugs"]) for row in rows(ledger)] == [
        ("keras", 20, []),
        ("tflite", 20, []),
    ]


@pytest.mark.full
def test_ten_thousand_spoilt_files() -> None:
    fuzz(0, 10_000, seed=2)


@pytest.mark.slow
def test_the_fuzzer_finds_bugs(tmp_path: Path) -> None:
    """With the check of option types taken out, it must complain."""
    script = (
        "import sys; sys.argv = ['fuzz', '--cases', '200']\n"
        "from nnbuild.frontend.checked_config import Config\n"
        "Config.integer = lambda self, key, default=None, minimum=1: self.values.get(key, default)\n"
        "from tests.fuzz.importer import fuzzer, main; sys.exit(main(lambda _: fuzzer()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 1
    assert "case" in result.stdout
