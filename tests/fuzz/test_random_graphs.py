"""The random campaign in short: networks at random in every format, for every set, by several compilers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import campaign
from benchmarks.random_graphs import MOST_WEIGHTS, random_graph, wide_graph
from benchmarks.spread import spread


def ran(ledger: Path, *words: object) -> int:
    return campaign.main([str(ledger), *map(str, words)])


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.parametrize("cases", [20, pytest.param(100, marks=pytest.mark.full)])
def test_random_networks(cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path / "ledger.jsonl", "--cases", cases, "--from", 10**6) == 0, capsys.readouterr().out


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.parametrize("cases", [8, pytest.param(40, marks=pytest.mark.full)])
def test_random_networks_of_wide_layers(cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path / "ledger.jsonl", "--cases", cases, "--from", 2 * campaign.WIDE) == 0, capsys.readouterr().out


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.parametrize("cases", [20, pytest.param(1000, marks=pytest.mark.full)])
def test_random_networks_of_every_operation(cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = campaign.BROAD + 10**6
    assert ran(tmp_path / "ledger.jsonl", "--cases", cases, "--from", first) == 0, capsys.readouterr().out


MENDED = [
    (campaign.Case(418, "int8", "armv7m", "ram"), "clang -O2"),
    (campaign.Case(12243, "float", "rvv256", "size"), "clang -O0"),
    (campaign.Case(12443, "mixed", "mve", "speed"), "gcc -O2"),
    (campaign.Case(12778, "int8", "rv32im", "speed"), "clang -O0"),
    (campaign.Case(13198, "int8", "rv32im", "ram"), "clang -O0"),
    (campaign.Case(17867, "float", "neon", "size"), "clang -O0"),
    (campaign.Case(14323, "int8", "armv6m", "speed"), "clang -O0"),
    (campaign.Case(218400018, "int16", "mve", "ram"), "clang -O0"),
    (campaign.Case(225600009, "float", "sse2", "size"), "clang -O0"),
    (campaign.Case(233040219, "int8", "neon_i8mm", "ram"), "clang -O0"),
    (campaign.Case(235200407, "mixed", "zve32x", "ram"), "clang -O0"),
    (campaign.Case(475440169, "float", "zve32x", "ram"), "clang -O0"),
    (campaign.Case(475440385, "float", "neon_dotprod", "size"), "clang -O0"),
    (campaign.Case(2400001503, "float", "avx_vnni", "size"), "clang -O0"),
    (campaign.Case(2402400682, "float", "neon_dotprod", "speed"), "clang -O0"),
    (campaign.Case(2402401443, "int8", "mve", "ram"), "gcc, sanitizers"),
    (campaign.Case(4800048317, "mixed", "armv7em_dsp", "ram"), "clang -O0"),
    (campaign.Case(2402401778, "float", "neon_dotprod", "speed"), "clang -O0"),
    (campaign.Case(2412000397, "float", "avx512_vnni", "ram"), "clang -O0"),
    (campaign.Case(4800505206, "int16", "armv6m", "speed"), "gcc -O3"),
    (campaign.Case(4800504684, "int16", "ssse3", "speed"), "gcc -O3"),
    (campaign.Case(4800505073, "float", "mve", "size"), "mve"),
]
"""Cases that were wrong once, and by which compiler that showed."""


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.parametrize("cases", [20, pytest.param(500, marks=pytest.mark.full)])
@pytest.mark.parametrize("first", [campaign.EVEN, campaign.ANY], ids=["even", "any kernel"])
def test_random_networks_as_published_and_by_any_kernel(
    first: int, cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(tmp_path / "ledger.jsonl", "--cases", cases, "--from", first + 10**6) == 0, capsys.readouterr().out


@pytest.mark.turns(2)
@pytest.mark.fuzz
@pytest.mark.parametrize(("case", "tool"), MENDED, ids=str)
def test_what_was_wrong_is_right(case: campaign.Case, tool: str) -> None:
    if tool in campaign.EMULATED and not campaign.are_here(campaign.EMULATED[tool][0]):
        pytest.skip(f"nothing here runs {tool}")
    assert campaign.compared([(case, campaign.entry_of(case, 0))], [campaign.Build(tool, False)]) == []


@pytest.mark.full
@pytest.mark.parametrize("share", range(4))
def test_random_networks_for_ten_minutes(share: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = 2 * 10**6 + share * 10**5
    assert ran(tmp_path / "ledger.jsonl", "--cases", 400, "--from", first) == 0, capsys.readouterr().out


def test_a_ledger_is_taken_up_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = {"builds": {"gcc -O2, portable C": 24}, "networks": 24, "wrong": [], "crashed": [], "refused": {"large": 1}}
    seen: list[int] = []

    def run(batch: int) -> dict:
        seen.append(batch)
        return {"batch": batch, "cases": 24, "kinds": {"int8, c99, size": 24}, **empty}

    monkeypatch.setattr(campaign, "run", run)
    ledger = tmp_path / "ledger.jsonl"
    assert ran(ledger, "--cases", 48) == 0
    assert ran(ledger, "--cases", 24) == 0
    assert seen == [0, 1, 2]
    capsys.readouterr()
    assert ran(ledger, "--summary") == 0
    assert capsys.readouterr().out.startswith(
        "72 compiled cases of 72 networks in 3 programs: 0 wrong, 0 crashes, 3 refused"
    )
    ledger.write_text(ledger.read_text() + json.dumps({**run(9), "wrong": ["seed 7: all of it"], "commit": "x"}) + "\n")
    assert ran(ledger, "--summary") == 1
    assert "wrong: seed 7: all of it" in capsys.readouterr().out
    assert ran(ledger, "--cases", 48) == 0
    assert seen[-2:] == [9, 3]


def test_parts_are_spread_over_processes_and_machines() -> None:
    assert sorted(spread(abs, range(-9, 0), "2")) == list(range(1, 10))
    assert list(spread(abs, [-3], "1", until=0)) == []
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as far:
        assert sorted(spread(abs, range(-9, 0), far.scheduler_address)) == list(range(1, 10))


@pytest.mark.slow
def test_what_is_wrong_and_what_crashes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(entries: list, folder: Path, tool: list, runner: list) -> list:
        return [{"y": None} for _ in entries]

    monkeypatch.setattr(campaign, "run_written", changed)
    monkeypatch.setattr(campaign, "judged", lambda entry, found, wanted: ["3 of 4 numbers of y are wrong"])
    line = campaign.run(3)
    assert line["cases"] == len(line["wrong"]) and "3 of 4 numbers of y are wrong" in line["wrong"][0]
    monkeypatch.setattr(campaign, "make_plan", lambda *_: 1 / 0)
    line = campaign.run(3)
    assert line["cases"] == 0 and len(line["crashed"]) == campaign.TOGETHER
    assert "ZeroDivisionError" in line["crashed"][0]


def test_networks_are_many_and_always_the_same() -> None:
    kinds = {op.kind for seed in range(60) for op in random_graph(seed).ops}
    assert kinds >= {
        "conv2d",
        "depthwise_conv2d",
        "dense",
        "pool2d",
        "binary",
        "activation",
        "concatenate",
        "pad",
        "reduce",
    }
    first, again = random_graph(5), random_graph(5)
    assert [vars(op.attributes) for op in first.ops] == [vars(op.attributes) for op in again.ops]


def test_wide_networks_have_a_layer_that_is_wide() -> None:
    sizes = [
        max(c.data.size for c in graph.constants.values()) for graph in map(wide_graph, range(40)) if graph.constants
    ]
    assert max(sizes) <= MOST_WEIGHTS
    assert sum(size > 20_000 for size in sizes) >= 10
    assert campaign.graph_of(campaign.Case(campaign.WIDE * campaign.TOGETHER, "float", "c99", "speed")).ops
