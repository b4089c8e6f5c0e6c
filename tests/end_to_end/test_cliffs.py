"""Trained-like networks have no steps that cost far more than others of their class, and dead channels cost nothing."""

from __future__ import annotations

import pytest

from benchmarks import alone
from benchmarks.cliffs import SHORT, dead_costs, main

pytestmark = pytest.mark.slow


def test_no_new_cliff_in_the_short_form(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--short"])
    assert status == 0, capsys.readouterr().out


def test_no_operation_is_slow_by_itself_without_a_cause(capsys: pytest.CaptureFixture[str]) -> None:
    status = alone.main(["avx512_vnni"])
    assert status == 0, capsys.readouterr().out


def test_what_lies_far_above_an_addition_is_suspicious() -> None:
    found = {"add int8": 1.0, "add float": 2.0, "odd int8": 7.0, "odd float": 4.0, "far int8": 1.0, "far float": 20.5}
    assert dict(alone.suspicious(found)) == {
        "odd int8": "7.0 times an addition, 3.5 times what it is in floats",
        "far float": "10.2 times an addition",
    }


@pytest.mark.full
def test_no_new_cliff(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([])
    assert status == 0, capsys.readouterr().out


@pytest.mark.turns(4)
@pytest.mark.slow
@pytest.mark.parametrize("target", ["m0", "rv32", "sse2", "avx512_vnni"])
@pytest.mark.parametrize("net", ["separable", "residual"])
def test_dead_channels_cost_nothing(net: str, target: str) -> None:
    assert target not in SHORT[0]
    assert dead_costs(net, target) < 1.05
