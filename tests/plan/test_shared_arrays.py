"""A layer that is used at every time step keeps its weights apart from what differs, and so once: where bytes count,
and in fast kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.nets import Net, planned, quantized
from nnbuild.jobs.options import Options, board_of, target_of
from nnbuild.model.graph import Graph
from nnbuild.ops.activation import Activation
from nnbuild.ops.dense import Dense
from nnbuild.plan.plan import make_plan

TIMES, SIZE = 12, 48


def unrolled(times: int, size: int = SIZE, form: str = "int8") -> Graph:
    """A layer applied again and again, with other ranges each time."""
    net = Net("net")
    x = net.input(size)
    constants = {"kernel": net.chance.normal(0, 0.3, (size, size)), "bias": net.chance.normal(0, 1, size)}
    for _ in range(times):
        x = net.add(Activation("tanh"), [net.add(Dense(), [x], constants)])
    return quantized(net.graph(x), form)


def constants(times: int, optimize: str, board: str) -> int:
    return sum(data.nbytes for data in planned(unrolled(times), board, optimize=optimize).constants.values())


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux"])
def test_weights_of_many_steps_are_stored_once(board: str) -> None:
    more = (constants(TIMES, "size", board) - constants(2, "size", board)) / (TIMES - 2)
    assert more < SIZE * SIZE / 2, "each further step has its scales and its table only"


@pytest.mark.turns(3)
@pytest.mark.slow
def test_what_speed_may_cost_counts_weights_of_many_steps_once() -> None:
    """Counted for each step, the smallest kernels would seem as large as those that arrange weights for each."""
    plan = planned(unrolled(24, 192), "microbit")
    assert {step.kernel_name for step in plan.steps if step.kind == "dense"} == {"two_products"}
    assert len({step.choice.demand.packed["kernel"].tobytes() for step in plan.steps if step.kind == "dense"}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_the_fast_kernels_of_cortex_m4_store_them_once(form: str) -> None:
    plan = planned(unrolled(6, 96, form), "mps2-an386")
    dense = [step for step in plan.steps if step.kind == "dense"]
    assert {step.kernel_name for step in dense} == {"patches_wide"}
    assert len({step.versions[0].names.packed["kernel"] for step in dense}) == 1
    assert len({step.versions[0].names.packed["scales"] for step in dense}) == 6


def test_exchangeable_weights_are_stored_for_each_step() -> None:
    """Other weights may differ between steps."""
    graph = unrolled(2)
    options = Options(Path(graph.name), "mps2-an386")
    target = replace(target_of(options, board_of(options)), swappable=True)
    assert not any("scales" in step.versions[0].names.packed for step in make_plan(graph, "m", target).steps)
