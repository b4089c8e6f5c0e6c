"""Long lists of cases in shares: the first runs always, the others in full runs."""

from __future__ import annotations

import pytest


def in_shares(count: int) -> pytest.MarkDecorator:
    """Gives a test the number of its `share`, of so many."""
    others = [pytest.param(number, marks=pytest.mark.full) for number in range(1, count)]
    return pytest.mark.parametrize("share", [0, *others])
