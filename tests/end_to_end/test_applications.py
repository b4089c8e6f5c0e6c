"""Models of keras.applications in all their files; benchmarks/applications.py runs the others."""

from __future__ import annotations

import pytest

from benchmarks.applications import FAMILIES, FORMS, one, passed

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

QUICK = "MobileNet"
"""The family that is run even when little time is to be spent."""


@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=() if name == QUICK else pytest.mark.full) for name in FAMILIES],
)
def test_the_smallest_of_a_family(family: str) -> None:
    pytest.importorskip("tensorflow")
    rows = list(one(FAMILIES[family][0], list(FORMS), program=False))
    assert [row for row in rows if not passed(row)] == []
