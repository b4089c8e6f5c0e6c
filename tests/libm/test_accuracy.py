"""Every function against the C library's double function: the error its comment states, and every special value."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

Run = Callable[..., str]
Bound = Callable[[str], float]

EXACT = ("ceilf", "fabsf", "floorf", "rintf", "roundf", "sqrtf", "truncf")
# What each function promises at most, in ULP; its comment states the smaller figure that was measured.
PROMISES = {
    **dict.fromkeys(EXACT, 0.0),
    **dict.fromkeys(("cosf", "erff", "exp2f", "expf", "expm1f", "log1pf", "logf", "sinf", "tanhf"), 1.0),
    "logisticf": 1.5,
}
PROMISES_OF_PAIRS = {"fmaxf": 0.0, "fminf": 0.0, "fmodf": 0.0, "powf": 1.0}
ALL = {**PROMISES, **PROMISES_OF_PAIRS}
TELLING = ("erff", "expf", "logf", "roundf", "sinf", "sqrtf", "tanhf", "logisticf")
"""The others are built alike, or are taken less often."""


@dataclass(frozen=True)
class Result:
    inputs: int
    worst: float
    at: str
    misrounded: int
    wrong: int


def parse(line: str) -> Result:
    _, inputs, worst, at, misrounded, wrong = line.split()
    return Result(int(inputs), float(worst), at, int(misrounded), int(wrong))


def judge(result: Result, bound: float) -> None:
    assert result.wrong == 0, f"{result.wrong} special results are wrong"
    if bound == 0:
        assert result.misrounded == 0, f"{result.misrounded} results are not exact"
    else:
        assert result.worst <= bound, f"{result.worst} ULP at {result.at}"


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_comment_keeps_the_promise(name: str, stated_bound: Bound) -> None:
    assert stated_bound(name) <= ALL[name]


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in TELLING else pytest.mark.slow) for name in sorted(ALL)]
)
def test_stratified_inputs(name: str, accuracy: Path, run: Run, stated_bound: Bound) -> None:
    result = parse(run(accuracy, name, "stratified", "15", "1"))
    assert result.inputs >= 2**24
    judge(result, stated_bound(name))


@pytest.mark.parametrize("name", sorted(ALL))
def test_special_values(name: str, accuracy: Path, run: Run, stated_bound: Bound) -> None:
    judge(parse(run(accuracy, name, "special")), stated_bound(name))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(PROMISES))
def test_every_float(name: str, accuracy: Path, run: Run, stated_bound: Bound) -> None:
    threads = str(min(os.cpu_count() or 1, 64))
    result = parse(run(accuracy, name, "0", str(2**32), "1", threads, timeout=3600))
    assert result.inputs == 2**32
    judge(result, stated_bound(name))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(PROMISES_OF_PAIRS))
def test_many_pairs(name: str, accuracy: Path, run: Run, stated_bound: Bound) -> None:
    threads = str(min(os.cpu_count() or 1, 64))
    judge(parse(run(accuracy, name, "stratified", "21", threads, timeout=3600)), stated_bound(name))
