"""No set with vectors computes int16 networks by kernels without: that took up to 20 times a float network's cycles."""

from __future__ import annotations

import pytest

from benchmarks.nets import planned, quantized
from benchmarks.trained import trained

MOST = 2.6
"""Cycles of an int16 network by those of the float one. Its numbers are half as wide, but are scaled and looked up."""
TARGETS = [("linux", "avx2_fma"), ("linux", "avx512"), ("linux-arm64", "neon"), ("linux-rv64v", "rvv")]


@pytest.mark.slow
@pytest.mark.turns(6)
@pytest.mark.parametrize("net", ["tokens", "separable", "residual"])
@pytest.mark.parametrize(("board", "isa"), [*TARGETS, ("mps3-an547", None)])
def test_words_cost_little_more_than_floats(net: str, board: str, isa: str | None) -> None:
    words, floats = (
        sum(step.choice.price.cycles for step in planned(quantized(trained(net), form), board, isa).steps)
        for form in ("int16", "float")
    )
    assert words <= MOST * floats, f"{words:,.0f} and {floats:,.0f} cycles"
