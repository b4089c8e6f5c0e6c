"""The reports of a check: the text as a person sees it, JSON and JUnit as programs do."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from check_cases import LABELS, RAW, evidence, float_output, integer_output, layer

from nnbuild.device.check import judge
from nnbuild.device.gates import Gates
from nnbuild.device.layers import LayerCost
from nnbuild.device.run_time import Modelled, time_of
from nnbuild.report.json_report import as_object, to_json
from nnbuild.report.junit import to_junit
from nnbuild.report.text import layer_table, to_text

TABLE = """\
layer    op       kernel    MACs   cycles     %  sum %  per MAC
───────  ───────  ──────  ──────  ───────  ────  ─────  ───────
conv     Conv2D   smlad   40,000   75,000  75.0   75.0     1.88
flatten  Reshape  none                  0   0.0   75.0
dense    Dense    smlad   10,000   25,000  25.0  100.0     2.50
───────  ───────  ──────  ──────  ───────  ────  ─────  ───────
total                     50,000  100,000                  2.00"""

FIGURES = """\
one run    100,000 cycles (min 99,800, max 100,200, std 163.3) = 595.2 µs at 168 MHz
per MAC    2.00 cycles (50,000 MACs)
start      321 cycles
stack      1,200 of 4,096 bytes used, including the link, static bound of a run 1,100
memory     arena 4,000, state 0 bytes"""


def test_text_of_a_pass() -> None:
    text = to_text(judge(evidence(labels=LABELS)))
    assert text.startswith("check of mnist (0123456789ab) on stm32f405, int8\n\noutput probs ")
    assert TABLE in text
    assert FIGURES in text
    assert "accuracy 100.00%, float model 100.00%" in text
    assert (
        "\npassed  output 'probs': top-1 agreement with float is 1, at least 0.98 wanted: 47 of 50 samples are enough\n"
        in text
    )
    assert text.endswith("\n\nPASS: 50 samples, 6 gates\n")


def test_text_of_a_fail() -> None:
    wrong = RAW.copy()
    wrong[0, 0] ^= 1
    text = to_text(judge(evidence(integer_output(reference=wrong), differences=(layer(True, "conv"), layer(False)))))
    assert (
        "\npassed  samples: 50 samples\nmissed  output 'probs': 1 of 200 integers differ from the reference, 0" in text
    )
    verdict = text[text.index("FAIL") :]
    assert verdict.startswith("FAIL: 2 of 7 gates missed\n  output 'probs': 1 of 200 integers differ")
    assert "  layers: the first layer that differs from the reference is 'dense' (Dense): 3 of 4 integers" in verdict
    assert "layers of sample 0\nlayer  op " in text
    assert "dense  Dense  DIFFERS: 3 of 4 integers" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_table_without_macs_and_without_cost() -> None:
    assert "total" in layer_table([LayerCost("flatten", "Reshape", "none", 0, 0)], "ns")
    assert "total" in layer_table([], "ns")


@pytest.mark.parametrize(
    ("unit", "hertz", "text"),
    [
        ("instructions", 10**9, "std 163.3)\n"),
        ("ns", 10**9, "std 163.3) = 100.0 µs\n"),
        ("cycles", 1000, "= 100,000.000 ms"),
    ],
)
def test_ticks_become_time_only_where_they_are_time(unit: str, hertz: int, text: str) -> None:
    assert text in to_text(judge(evidence(unit=unit, hertz=hertz)))


def test_json_says_it_all() -> None:
    report = judge(evidence(integer_output(), float_output(), labels=LABELS, differences=(layer(False),)))
    facts = json.loads(to_json(report))
    assert facts["verdict"] == "fail"
    assert [miss["gate"] for miss in facts["misses"]] == ["layers"]
    first, last = facts["layers"][0], facts["layers"][-1]
    assert first.items() >= {"name": "conv", "op": "Conv2D", "kernel": "smlad", "macs": 40000, "cost": 75000}.items()
    assert (first["percent"], first["percent_so_far"], first["cost_per_mac"]) == (75, 75, 1.875)
    assert (last["percent"], last["percent_so_far"]) == (25, 100)
    assert facts["outputs"][0]["comparisons"][0]["mismatches"] == 0
    assert facts["stack"] == {"used": 1200, "size": 4096, "bound": 1100}
    assert facts["total"] == 100_000 and facts["unit"] == "cycles"
    assert len(facts["outputs"][0]["confusion"]) == 4


def test_json_stays_valid_with_infinite_errors() -> None:
    broken = float_output(raw=np.full((50, 4), np.nan, np.float32))
    facts = json.loads(to_json(judge(evidence(broken))), parse_constant=lambda name: pytest.fail(name))
    assert facts["outputs"][0]["comparisons"][0]["metrics"]["rmse"] is None
    assert facts["verdict"] == "fail"


def test_junit_has_a_case_per_gate() -> None:
    wrong = RAW.copy()
    wrong[0, 0] ^= 1
    report = judge(evidence(integer_output(name='odd <"&\x01> name', reference=wrong)), Gates(min_cosine=0.5))
    suite = ElementTree.fromstring(to_junit(report).encode())
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures")) == (str(len(report.results)), "1")
    assert len(cases) == len(report.results)
    (failed,) = [case for case in cases if case.find("failure") is not None]
    assert failed.get("name") == "output 'odd <\"&?> name': reference"
    assert failed.get("classname") == "stm32f405.mnist"
    assert f"FAIL: 1 of {len(report.results)} gates missed" in (suite.findtext("system-out") or "")


MODELLED = Modelled("Cortex-M4", 514_758, 168_000_000, (-5, 15))
LEAST = Modelled("rv32", 948_158, 160_000_000, (0, 0), at_least=True)


@pytest.mark.parametrize(
    ("unit", "hertz", "found", "words", "kind"),
    [
        ("instructions", 168_000_000, MODELLED, "3.06 ms", "estimated"),
        ("instructions", 160_000_000, LEAST, "≥ 5.93 ms", "at least"),
        ("cycles", 168_000_000, MODELLED, "0.595 ms", "measured"),
        ("ns", 1_000_000_000, None, "0.100 ms", "measured"),
        ("instructions", 168_000_000, None, None, None),
    ],
)
def test_the_time_of_a_run(unit: str, hertz: int, found: Modelled | None, words: str | None, kind: str | None) -> None:
    time = time_of(unit, 100_000, hertz, found)
    assert (time and time.words, time and time.kind) == (words, kind)


def test_what_is_emulated_and_estimated_says_so() -> None:
    report = replace(judge(evidence(labels=LABELS)), unit="instructions", modelled=MODELLED)
    text = to_text(report)
    assert "instructions (emulated; min" in text
    assert "estimated  514,758 cycles of a Cortex-M4 = 3.064 ms (2.911 to 3.524) at 168 MHz" in text
    least = to_text(replace(report, modelled=LEAST))
    assert "estimated  at least 5.93 ms at 160 MHz, at one cycle per instruction" in least
    assert as_object(report)["milliseconds_are"] == "estimated"
