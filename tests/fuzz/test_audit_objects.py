"""Damaged object files never make the audit raise anything but its own errors, hang, or use much memory."""

import pytest

from .audit_objects import MEMORY_LIMIT, fuzz


def check(cases: int, seed: int) -> None:
    result = fuzz(cases, seed)
    assert result.failures == []
    assert sum(result.outcomes.values()) == cases
    assert result.outcomes["report"] > cases // 10, (
        "nearly every case was refused: the damage is too coarse to test much"
    )
    assert result.peak < MEMORY_LIMIT


@pytest.mark.turns(3)
@pytest.mark.fuzz
def test_damaged_objects() -> None:
    check(500, seed=20)


@pytest.mark.full
def test_ten_thousand_damaged_objects() -> None:
    check(10_000, seed=1)
