"""A flash that is nearly full takes the fastest kernels that fit, by their constants and their code together."""

from __future__ import annotations

import pytest

from nnbuild.jobs import pipeline
from nnbuild.jobs.compression import model_flash
from nnbuild.jobs.pipeline import Options, compile_model
from nnbuild.plan.plan import Plan
from tests.boards.conftest import MNIST


def cycles(plan: Plan) -> float:
    return sum(step.choice.price.cycles for step in plan.steps)


@pytest.mark.turns(2)
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


def test_what_fits_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(MNIST / "mnist.h5", "mps2-an386", "int8")
    fast = compile_model(options).plan
    monkeypatch.setattr(pipeline, "flash_room", lambda board, plan: model_flash(plan))
    assert cycles(compile_model(options).plan) == cycles(fast)
