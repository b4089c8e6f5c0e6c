"""The coverage page is what the tests prove, and leaves nothing out that TFLite computes."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tflite")

ROOT = Path(__file__).resolve().parents[2]
COVERAGE = ROOT / "docs" / "coverage.md"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "script" / "coverage_table.py"))


def asked(question: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.tflite_reference", question]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if re.fullmatch(r"[A-Z0-9_]+( [a-z0-9]+)?", line)]


def test_page_is_up_to_date(script: dict[str, Any]) -> None:
    assert script["page"]() == COVERAGE.read_text(), "run script/coverage_table.py"


def test_every_operator_that_is_read_has_a_file(script: dict[str, Any]) -> None:
    read = {*script["OPERATORS"], *script["FOLDS"], "SHAPE", "RANK", "ZEROS_LIKE"}
    without = read - set(script["proven"]()) - {"CEIL", "ELU"}
    assert without == set()


def test_every_gap_has_a_reason(script: dict[str, Any]) -> None:
    for kind, covered, *_, remark in script["rows"]():
        assert (covered == "yes") != (kind in script["WHY"]), kind
        assert covered == "yes" or remark


def test_enough_is_covered(script: dict[str, Any]) -> None:
    assert sum(row[1] == "yes" for row in script["rows"]()) >= 130


@pytest.mark.oracle
def test_the_list_is_the_interpreters_own(script: dict[str, Any]) -> None:
    pytest.importorskip("ai_edge_litert")
    assert sorted(asked("registered")) == sorted(script["REFERENCE"])


@pytest.mark.oracle
@pytest.mark.full
def test_no_type_is_left_out(script: dict[str, Any]) -> None:
    pytest.importorskip("ai_edge_litert")
    columns = ("float32", "int8", "int16", script["OTHER"])
    said = {row[0]: dict(zip(columns, row[2:6], strict=True)) for row in script["rows"]()}
    for line in asked("retyped"):
        kind, dtype = line.split()
        assert said[kind][dtype if dtype in columns else script["OTHER"]] != "-", line
