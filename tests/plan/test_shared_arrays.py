"""Where bytes count, a layer that is used at every time step keeps its weights apart from what differs, and so once."""

from __future__ import annotations

import pytest

from benchmarks.nets import Net, planned, quantized
from nnbuild.model.graph import Graph
from nnbuild.ops.activation import Activation
from nnbuild.ops.dense import Dense

TIMES, SIZE = 12, 48


def unrolled(times: int, size: int = SIZE) -> Graph:
    """A layer applied again and again, with other ranges each time."""
    net = Net("net")
    x = net.input(size)
    constants = {"kernel": net.chance.normal(0, 0.3, (size, size)), "bias": net.chance.normal(0, 1, size)}
    for _ in range(times):
        x = net.add(Activation("tanh"), [net.add(Dense(), [x], constants)])
    return quantized(net.graph(x), "int8")


def constants(times: int, optimize: str, board: str) -> int:
    return sum(data.nbytes for data in planned(unrolled(times), board, optimize=optimize).constants.values())


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux"])
def test_weights_of_many_steps_are_stored_once(board: str) -> None:
    more = (constants(TIMES, "size", board) - constants(2, "size", board)) / (TIMES - 2)
    assert more < SIZE * SIZE / 2, "each further step has its scales and its table only"


def test_what_speed_may_cost_counts_weights_of_many_steps_once() -> None:
    """Counted for each step, the smallest kernels would seem as large as those that arrange weights for each."""
    plan = planned(unrolled(24, 192), "microbit")
    assert {step.kernel_name for step in plan.steps if step.kind == "dense"} == {"two_products"}
    assert len({step.choice.demand.packed["kernel"].tobytes() for step in plan.steps if step.kind == "dense"}) == 1
