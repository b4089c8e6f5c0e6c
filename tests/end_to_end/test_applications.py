"""Models of keras.applications in all their files."""

from __future__ import annotations

import pytest

from benchmarks.applications import FAMILIES, FORMS, one, passed

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_the_smallest_of_a_family(family: str) -> None:
    pytest.importorskip("tensorflow")
    rows = list(one(FAMILIES[family][0], list(FORMS), program=False))
    assert [row for row in rows if not passed(row)] == []
