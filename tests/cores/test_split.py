"""How the work of a step is divided, and what a board's table may say of its cores."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.cores import chosen_cores, core_table
from nnbuild.kernels.contract import Demand
from nnbuild.plan.cores import Cores
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.split import _borders, _parts
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.quantized import quantized

CHEAP = Cores(8, fork=0)


@pytest.mark.parametrize("extent", [1, 2, 7, 8, 25, 125, 1000])
@pytest.mark.parametrize("grain", [1, 2, 4])
@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize("slow", [None, 0.3])
def test_parts_follow_each_other_and_none_is_empty(extent: int, grain: int, parts: int, slow: float | None) -> None:
    parts = min(parts, -(-extent // grain))
    speeds = () if slow is None else (slow, *(1.0,) * (parts - 1))
    for costs in ((), tuple(1.0 + at % 3 for at in range(extent))):
        borders = _borders(Demand(extent, grain=grain, costs=costs), parts, Cores(parts, speeds=speeds))
        assert len(borders) == parts + 1
        assert borders[0] == 0 and borders[-1] == extent
        assert all(a < b for a, b in pairwise(borders))
        assert all(border % grain == 0 for border in borders[1:-1])


def test_the_dearest_part_is_as_cheap_as_can_be() -> None:
    costs = (1.0, 5.0, 5.0, 5.0, 5.0, 1.0)
    borders = _borders(Demand(6, costs=costs), 3, CHEAP)
    assert max(sum(costs[a:b]) for a, b in pairwise(borders)) == 10


def test_a_slower_core_gets_less() -> None:
    assert _borders(Demand(90), 2, Cores(2, speeds=(0.5, 1.0))) == (0, 30, 90)
    assert _borders(Demand(4, costs=(1.0, 1.0, 1.0, 3.0)), 2, Cores(2, speeds=(1.0, 0.5))) == (0, 3, 4)
    assert _parts(Demand(8), 1000, Cores(2, fork=0, speeds=(1.0, 0.1)), 8) == 1, "one eighth takes the slow one longer"
    assert _parts(Demand(8), 1000, Cores(2, fork=0, speeds=(0.1, 1.0)), 8) == 2


def test_no_more_parts_than_help() -> None:
    assert _parts(Demand(25), 25_000, CHEAP, 25) == 7, "with 8 the longest part has four rows, too"
    assert _parts(Demand(8), 1000, replace(CHEAP, fork=900), 8) == 1
    assert _parts(Demand(8), 1000, replace(CHEAP, fork=100, each=100), 8) == 4


def of(name: str, cores: Cores) -> Plan:
    return make_plan(quantized(dict(cases())[name](), "int8", seed=3), "net", Target(cores=cores))


@pytest.mark.parametrize("name", ["conv2d-0", "depthwise-0-1", "activation-tanh"])
def test_parts_that_run_at_the_same_time_share_nothing_with_their_input(name: str) -> None:
    plan = of(name, CHEAP)
    assert any(step.parts > 1 for step in plan.steps)
    assert not any(step.shares_storage for step in plan.steps if step.parts > 1)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"count": 0}, "its [cores] count = 0 is not valid. Write a number from 1."),
        ({"counts": 2}, "its [cores] has no counts. Write count, usual, fork, each, bound, runtime, local, kinds."),
        ({"count": 2, "usual": 3}, "its [cores] usual = 3, but count = 2. Write no more than count."),
        ({"count": 65}, "its [cores] count = 65; steps are split over 64 at most. Write at most 64."),
        (
            {"count": 2, "kinds": [{"isa": "armv7m"}]},
            "it has 1 [[cores.kinds]], but count = 2. Write one for each core, or none where all are alike.",
        ),
        ({"kinds": [{"speed": 2}]}, "one of its [[cores.kinds]] has no isa. Write its instruction set."),
        ({"runtime": 3}, "its [cores] runtime = 3 is not valid. Write the name of a file in firmware/cores/."),
    ],
)
def test_tables_that_cannot_be(table: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        core_table("mine", table)
    assert str(caught.value) == f"board 'mine': {said}"


def test_more_cores_than_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        chosen_cores("mine", core_table("mine", {"count": 2}), 3)
    assert str(caught.value) == "--cores 3: mine has 2 cores. Take at most 2."
