"""No model may take more on a microcontroller than it did: the figures are counts, the same on every machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.footprint import BASELINE, grown, rows
from tests.boards.conftest import ROOT

pytestmark = pytest.mark.emulator

OFTEN = ("kws",)
MODELS = tuple(dict.fromkeys(row.model for row in rows()))


@pytest.mark.parametrize(
    "model", [*OFTEN, *(pytest.param(name, marks=pytest.mark.full) for name in MODELS if name not in OFTEN)]
)
def test_nothing_has_grown(model: str) -> None:
    done = subprocess.run([sys.executable, "benchmarks/footprint.py", model], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_growth_is_noticed() -> None:
    known = json.loads(BASELINE.read_text())
    row = next(iter(known.values()))
    assert grown(row, row) == []
    larger = {**row, "arena": row["arena"] * 103 // 100}
    assert grown(row, larger) == [f"arena from {row['arena']:,} to {larger['arena']:,}"]
