"""A flash that is nearly full takes the fastest kernels that fit, by their constants and their code together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nnbuild.backends.firmware.layout import CODE_PER_STEP
from nnbuild.board.tables import find
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs import pipeline
from nnbuild.jobs.compression import compiled_within, model_flash, within_flash
from nnbuild.jobs.options import Options, target_of
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.ops.dense import Dense
from nnbuild.plan.least_constants import least_constants
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.select import Choice
from nnbuild.plan.weight_growth import within_limit
from tests.boards.conftest import MNIST


def cycles(plan: Plan) -> float:
    return sum(step.choice.price.cycles for step in plan.steps)


@pytest.mark.slow
@pytest.mark.turns(4)
@pytest.mark.parametrize(("share", "slower"), [(0.9, 1.3), (0.8, 2)])
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_few_steps_get_slower(board: str, share: float, slower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(MNIST / "mnist.h5", board, "int8")
    fast = compile_model(options).plan
    limit = int(share * model_flash(fast))
    monkeypatch.setattr(pipeline, "flash_room", lambda board, plan: limit)
    tight = compile_model(options).plan
    assert model_flash(tight) <= limit
    assert cycles(fast) < cycles(tight) < slower * cycles(fast)


@pytest.mark.slow
def test_what_fits_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(MNIST / "mnist.h5", "mps2-an386", "int8")
    fast = compile_model(options).plan
    monkeypatch.setattr(pipeline, "flash_room", lambda board, plan: model_flash(plan))
    assert cycles(compile_model(options).plan) == cycles(fast)


def least_of(options: Options, plan: Plan) -> int:
    return least_constants(plan.graph, target_of(options, find(options.board)))


def test_what_no_kernels_make_fit_is_not_searched_for() -> None:
    """A program without room for its constants, or for anything beside the names of its layers."""
    fast = compile_model(Options(MNIST / "mnist.h5", "mps2-an386", "int8")).plan
    made: list[int] = []

    def again(most: int) -> Plan:
        made.append(most)
        return fast

    for limit in (-1, 0, 5000):
        assert within_flash(fast, limit, again, lambda: fast, lambda: 5000) is fast
    assert not made
    within_flash(fast, 5001, again, lambda: fast, lambda: 5000)
    assert made


@pytest.mark.parametrize(
    ("sizes", "limits", "chosen"),
    [
        ([90], [100], 0),
        ([105, 100], [100, 95], 1),
        ([105, 104, 60], [100, 95], 2),
        ([130, 120, 125], [100, 70], 1),
        ([None], [100], 0),
    ],
)
def test_compiled_code_that_is_larger_than_its_estimate(
    sizes: list[int | None], limits: list[int], chosen: int
) -> None:
    """Plans for fewer bytes, then the smallest one; the smallest of all where none fits."""
    plan = compile_model(Options(MNIST / "mnist.h5", "mps2-an386", "int8")).plan
    plans = [replace(plan) for _ in sizes]
    code = {id(each): None if size is None else 1000 * size for each, size in zip(plans, sizes, strict=True)}
    asked: list[int] = []

    def planned(limit: int) -> Plan:
        asked.append((limit - weights_bytes(plan)) // 1000)
        return plans[len(asked) - 1]

    def measured(each: Plan) -> int | None:
        return code[id(each)]

    found = compiled_within(planned, lambda: plans[-1], weights_bytes(plan) + 100_000, measured)
    assert found is plans[chosen]
    assert asked == limits


@pytest.mark.slow
@pytest.mark.turns(6)
@pytest.mark.parametrize(
    "more",
    [{}, {"quantize": "int8"}, {"quantize": "int8", "prune": "0.9"}, {"quantize": "int8", "share": "4"}],
    ids=str,
)
def test_no_plan_stores_fewer_constants(more: dict[str, Any]) -> None:
    calibrate = MNIST / "calibration.npz" if len(more) > 1 else None
    for optimize in ("speed", "size", "ram"):
        options = Options(MNIST / "mnist.h5", "mps2-an386", optimize=optimize, calibrate=calibrate, **more)
        plan = compile_model(options).plan
        least = least_of(options, plan)
        assert 0.1 * weights_bytes(plan) < least <= weights_bytes(plan)
        smallest = make_plan(plan.graph, "m", replace(target_of(options, find(options.board)), optimize="size"))
        assert 0.8 * weights_bytes(smallest) < least <= weights_bytes(smallest)
        assert CODE_PER_STEP * len(plan.steps) < plan.code


def test_equal_constants_count_once() -> None:
    """A sum of two layers with the same weights takes as much as one."""
    weights = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
    constants = {"kernel": Constant("kernel", weights), "again": Constant("again", weights.copy())}
    ops = [Op(f"y{at}", Dense(), ("x",), (f"y{at}",), {"kernel": held}) for at, held in enumerate(constants)]
    tensors = {name: Tensor(name, (8,)) for name in ("x", "y0", "y1")}
    graph = Graph("model", tensors, constants, tuple(ops), ("x",), ("y0", "y1"))
    one = replace(graph, ops=graph.ops[:1], outputs=("y0",), tensors={name: tensors[name] for name in ("x", "y0")})
    target = target_of(Options(MNIST / "mnist.h5", "mps2-an386"), find("mps2-an386"))
    assert least_constants(graph, target) == least_constants(one, target) == weights.nbytes


def test_a_limit_that_nothing_meets_takes_the_smallest_kernels() -> None:
    plan = compile_model(Options(MNIST / "mnist.h5", "mps2-an386", "int8")).plan
    choices = [step.choice for step in plan.steps]
    asked: list[int] = []

    def fits(tried: list[Choice]) -> bool:
        asked.append(len(tried))
        return True

    found = within_limit(choices, 1, fits=fits, with_code=True)
    assert asked == [len(choices)]
    for choice, given in zip(found, choices, strict=True):
        assert choice.price.weights + choice.price.code.own <= given.price.weights + given.price.code.total
    weights = [choice.price.weights for choice in within_limit(choices, 1)]
    assert weights == [min(offer.price.weights for offer in choice.offers) for choice in choices]
