"""Cases that take turns: in as many turns as their mark says, each has been taken once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import of_other_turns


@pytest.mark.parametrize(("cases", "count"), [(1, 3), (1, 4), (6, 2), (7, 3), (35, 4)])
def test_every_case_has_its_turn(cases: int, count: int) -> None:
    marker = SimpleNamespace(args=(count,))
    family: list[Any] = [
        SimpleNamespace(nodeid=f"test_all[{i}]", get_closest_marker=lambda _: marker) for i in range(cases)
    ]
    taken = [
        [item.nodeid for item in family if item not in of_other_turns(family, turn)] for turn in range(7, 7 + count)
    ]
    assert sorted(name for names in taken for name in names) == sorted(item.nodeid for item in family)
    assert max(map(len, taken)) - min(map(len, taken)) <= 1


def test_tests_of_one_case_do_not_all_run_in_the_same_turn() -> None:
    marker = SimpleNamespace(args=(3,))
    tests: list[Any] = [SimpleNamespace(nodeid=f"test_{i}", get_closest_marker=lambda _: marker) for i in range(60)]
    taken = [sum(not of_other_turns([test], turn) for test in tests) for turn in range(3)]
    assert sum(taken) == len(tests)
    assert min(taken) > 10
