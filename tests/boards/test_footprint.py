"""No model may take more on a microcontroller than it did: the figures are counts, the same on every machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.boards.conftest import ROOT

pytestmark = pytest.mark.emulator


def test_nothing_has_grown() -> None:
    done = subprocess.run([sys.executable, "benchmarks/footprint.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_growth_is_noticed() -> None:
    from benchmarks.footprint import BASELINE, grown

    known = json.loads(BASELINE.read_text())
    row = next(iter(known.values()))
    assert grown(row, row) == []
    larger = {**row, "arena": row["arena"] * 103 // 100}
    assert grown(row, larger) == [f"arena from {row['arena']:,} to {larger['arena']:,}"]
