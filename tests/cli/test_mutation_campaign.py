"""The campaign of mutants: what is in the ledger is not run again, and the summary keeps its bar."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import mutants


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["mutants.py", *map(str, words)])
    return mutants.main()


def made_up(survived: int) -> object:
    def measured(unit: mutants.Unit) -> dict:
        if unit.format == "mixed":
            return {"unit": unit.__dict__, "refused": "layer 'x': not today."}
        fates = (
            [["weight", True, True]] * (100 - survived)
            + [["index", False, True]] * survived
            + [["bound", False, False]]
        )
        return {"unit": unit.__dict__, "fates": fates, "survived": [], "seconds": 1.0}

    return measured


def test_a_campaign_is_taken_up_where_it_was_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    monkeypatch.setattr(mutants, "measured", made_up(2))
    words = (ledger, "--models", "net_residual_0", "net_u_net_1", "--formats", "int8", "mixed")
    assert run(monkeypatch, *words, "--minutes", 0) == 0
    assert not ledger.exists()
    assert run(monkeypatch, *words) == 0
    assert len(ledger.read_text().splitlines()) == 4
    monkeypatch.setattr(mutants, "measured", lambda unit: pytest.fail("it was run again"))
    assert run(monkeypatch, *words) == 0
    capsys.readouterr()
    assert run(monkeypatch, ledger, "--summary") == 0
    said = capsys.readouterr().out
    assert said.startswith("202 mutants of 2 programs of 2 models; 2 programs refused")
    assert "98.00%" in said and "net_u_net_1 mixed: layer 'x': not today." in said


def test_a_summary_below_the_bar_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mutants, "measured", made_up(4))
    ledger = tmp_path / "ledger.jsonl"
    run(monkeypatch, ledger, "--models", "net_residual_0", "--formats", "int8")
    assert run(monkeypatch, ledger, "--summary") == 1
    assert json.loads(ledger.read_text())["unit"]["board"] == "linux"


@pytest.mark.full
@pytest.mark.parametrize("form", mutants.FORMATS)
def test_a_piece_of_the_campaign(form: str) -> None:
    row = mutants.measured(mutants.Unit("net_keyword_spotting_0", form, "linux", 64, 2000, 7))
    assert sum(killed for _, killed, _ in row["fates"]) > 20
