"""The campaign over model files in short: random Keras and ONNX models, in what today's tools write of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import file_campaign

pytestmark = [pytest.mark.fuzz, pytest.mark.oracle]
SCRIPT = Path(file_campaign.__file__)


@pytest.mark.parametrize("source", ["onnx", "keras"])
@pytest.mark.parametrize(
    "models", [pytest.param(5, marks=pytest.mark.turns(4)), pytest.param(200, marks=pytest.mark.full)]
)
def test_random_files(source: str, models: int, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow" if source == "keras" else "onnxruntime")
    command = [sys.executable, str(SCRIPT), str(tmp_path / "ledger.jsonl"), "--of", source, "--from", str(10**6)]
    done = subprocess.run([*command, "--models", str(models)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{source}: " in done.stdout


def row(**said: str) -> dict[str, object]:
    return {"source": "keras", "seed": 3, "files": [list(pair) for pair in said.items()], "commit": "abc"}


def test_the_summary_counts_and_names_what_is_wrong(tmp_path: Path) -> None:
    rows = [row(keras="right", h5="refused: no"), {**row(keras="2 of 5 numbers of y are wrong, by up to 3"), "seed": 4}]
    rows.append({**row(), "seed": 5})
    text = file_campaign.summary(rows)
    assert text.splitlines() == [
        "3 models, of which 1 ended the process of the tool that writes them",
        "keras: 1 right, 1 wrong",
        "h5: 1 refused",
        "keras 4, keras: 2 of 5 numbers of y are wrong, by up to 3",
    ]
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("".join(json.dumps(each) + "\n" for each in rows))
    command = [sys.executable, str(SCRIPT), str(ledger), "--summary"]
    assert subprocess.run(command, capture_output=True).returncode == 1
