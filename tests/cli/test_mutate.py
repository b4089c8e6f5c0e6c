"""nnbuild mutate: what samples notice, what they do not, and which inputs would."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from nnbuild.jobs.generated_samples import searched_samples
from nnbuild.jobs.mutants import KINDS, NUMBER, _kind_in
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.samples import SampleSet
from tests.cli.conftest import Nnbuild, numbers
from tests.cli.test_gate import WIDTH, layers

pytestmark = pytest.mark.slow


@pytest.fixture
def model(tmp_path: Path) -> Path:
    np.savez(tmp_path / "calibration.npz", x=numbers(64, WIDTH))
    return layers(tmp_path / "net.h5")


def int8(model: Path) -> list[object]:
    return [model, "--quantize", "int8", "--calibrate", model.with_name("calibration.npz"), "--isa", "c99"]


@pytest.mark.turns(3)
def test_poor_samples_miss_what_their_killers_find(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "poor.npz", x=np.zeros((1, WIDTH), np.float32))
    options = [*int8(model), "--mutants", 40, "--search", 200]
    poor = nnbuild("mutate", *options, "--inputs", tmp_path / "poor.npz", "--killers", tmp_path / "k.npz", "--json")
    assert poor.status == 0
    facts = poor.json()
    assert {each["kind"] for each in facts["kinds"]} <= set(KINDS)
    assert facts["survived"] > 0 and facts["killed"] > 0
    assert facts["killed"] + facts["survived"] + facts["alike"] == len(facts["mutants"]) >= 30
    assert all("searched input" in each["how"] for each in facts["mutants"] if each["told"] and not each["killed"])
    with np.load(tmp_path / "k.npz") as killers:
        (added,) = killers.values()
    assert 0 < len(added) <= facts["survived"]
    np.savez(tmp_path / "better.npz", x=np.concatenate([np.zeros((1, WIDTH), np.float32), added]))
    better = nnbuild("mutate", *options, "--inputs", tmp_path / "better.npz", "--min-rate", "0.9", "--json")
    assert better.status == 0, better.out
    noticed = {(each["layer"], each["change"]) for each in better.json()["mutants"] if each["killed"]}
    assert noticed >= {(each["layer"], each["change"]) for each in facts["mutants"] if each["told"]}


def test_code_is_changed_whatever_instructions_it_uses(nnbuild: Nnbuild, model: Path) -> None:
    facts = nnbuild("mutate", model, "--isa", "sse2", "--mutants", 14, "--search", 5, "--json").json()
    assert len(facts["mutants"]) <= 14
    assert {"index", "number"} <= {each["kind"] for each in facts["kinds"]}


def test_fewer_mutants_than_asked_are_told(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("mutate", model, "--isa", "c99", "--mutants", 400, "--search", 1)
    assert re.search(r"\d+ mutants instead of 400: no other number of the program can be changed", said.err)


def test_a_rate_that_is_missed_fails(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "poor.npz", x=np.zeros((1, WIDTH), np.float32))
    options = [model, "--mutants", 24, "--search", 60, "--inputs", tmp_path / "poor.npz", "--min-rate", "0.99"]
    said = nnbuild("mutate", *options)
    assert said.status == 1
    assert "survived:\n  " in said.out and "would be killed by searched input" in said.out
    assert re.search(r"^FAIL: \S+ killed, at least 99.00% wanted$", said.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--mutants", "0"], "--mutants 0: without mutants there is nothing to measure. Give at least 1."),
        (["--mutants", "x"], "'x' is not a number up to 1000000"),
        (["--min-rate", "2"], "'2' is not a share from 0 to 1"),
        (
            ["--program", "there"],
            "--program and --port: mutants are separate programs, and cannot replace a given one. Leave them out.",
        ),
    ],
)
def test_wrong_usage(nnbuild: Nnbuild, model: Path, words: list[str], cause: str) -> None:
    said = nnbuild("mutate", model, *words)
    assert said.status == 2
    assert cause in " ".join(said.err.split())


def test_a_program_that_is_wrong_already_is_no_subject(
    nnbuild: Nnbuild, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = __import__("nnbuild.jobs.mutate", fromlist=["run_samples"]).run_samples

    def off(*args: object, **named: object) -> object:
        runs = honest(*args, **named)
        return type(runs)(tuple(v + 1 for v in runs.raw), runs.y, runs.ticks)

    monkeypatch.setattr("nnbuild.jobs.mutate.run_samples", off)
    said = nnbuild("mutate", model, "--mutants", "8")
    assert said.status == 1
    assert "the program itself is wrong at sample 0. Run nnbuild check on it." in said.err


@pytest.mark.turns(4)
@pytest.mark.emulator
def test_mutants_of_a_firmware(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("mutate", *int8(model)[:-2], "--board", "stm32", "--mutants", 6, "--search", 10)
    assert said.status == 0, said.err
    assert "on stm32f405, int8" in said.out


LINES = {
    "        for (int32_t y = begin; y < 25; ++y) {": ["bound"],
    "            if (sum < -128) sum = -128;": ["bound", "number"],
    "            sum += row[3 + i] * w;": ["index"],
    "            taps += 160;": ["index"],
    "            const float *row = from + (top + ky) * 28 + left;": ["index"],
    "            x = a >> 7;": ["shift"],
    "            y = x * 3.5f + 2.0f;": ["number", "number"],
}


@pytest.mark.parametrize("line", LINES)
def test_numbers_of_the_code_have_a_kind(line: str) -> None:
    found = [_kind_in(line, number) for number in NUMBER.finditer(line)]
    assert [kind for kind, number in zip(found, NUMBER.findall(line), strict=True) if number != "0"] == LINES[line]


def test_searched_inputs_are_of_many_kinds_and_always_the_same(model: Path) -> None:
    graph = compile_model(Options(model)).graph
    given = SampleSet({graph.inputs[0]: numbers(3, WIDTH)})
    first, second, other = (searched_samples(graph, given, 100, seed).inputs[graph.inputs[0]] for seed in (0, 0, 1))
    assert np.array_equal(first, second) and not np.array_equal(first, other)
    assert np.abs(first).max() <= 4 and len(np.unique(first, axis=0)) > 80
