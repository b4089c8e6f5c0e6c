"""Trained-like networks have no steps that cost far more than others of their class, and dead channels cost nothing."""

from __future__ import annotations

import pytest

from benchmarks.cliffs import SHORT, dead_costs, main

pytestmark = pytest.mark.slow


def test_no_new_cliff_in_the_short_form(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--short"])
    assert status == 0, capsys.readouterr().out


@pytest.mark.full
def test_no_new_cliff(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([])
    assert status == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("target", ["m0", "rv32", "sse2", "avx512_vnni"])
@pytest.mark.parametrize("net", ["separable", "residual"])
def test_dead_channels_cost_nothing(net: str, target: str) -> None:
    assert target not in SHORT[0]
    assert dead_costs(net, target) < 1.05
