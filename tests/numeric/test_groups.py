"""Groups of weights whose sums keep within a bound."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.numeric.groups import grouped


@pytest.mark.parametrize("taps", [1, 2, 3, 27, 64, 145])
@pytest.mark.parametrize("spread", [1, 20, 60, 400])
def test_every_group_keeps_within_the_bound(taps: int, spread: int) -> None:
    weights = np.clip(np.random.default_rng(taps).normal(0, spread, (taps, 12)), -128, 127).astype(np.int64)
    order, size = grouped(weights, 255)
    assert sorted(order) == list(range(taps))
    sums = [np.abs(weights[order[at : at + size]]).sum(axis=0).max() for at in range(0, taps, size)]
    assert max(sums) <= 255


def test_only_the_largest_weights_limit_groups() -> None:
    """Two weights of -128 never share a group; others form groups as large as possible."""
    assert grouped(np.full((6, 2), -128), 255)[1] == 1
    assert grouped(np.full((6, 2), 127), 255)[1] == 2
    assert grouped(np.full((16, 2), 3), 255)[1] == 8
    assert grouped(np.zeros((16, 2), np.int64), 255)[1] == 8
