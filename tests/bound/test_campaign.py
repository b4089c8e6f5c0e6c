"""Many runs of many programs against their bounds; benchmarks/bound.py goes on with its ledger where it stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import ROOT


@pytest.mark.full
@pytest.mark.emulator
def test_no_run_is_above_its_bound(tmp_path: Path) -> None:
    ledger = tmp_path / "bound.json"
    for count in (100, 200):
        command = [
            sys.executable,
            "benchmarks/bound.py",
            "--runs",
            "100",
            "--ledger",
            str(ledger),
            "random",
            "lstm int8",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(ledger.read_text()).values()
        assert len(found) > 45
        assert {entry["runs"] for entry in found if "runs" in entry} == {count}
