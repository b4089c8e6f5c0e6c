"""Leaky ReLUs with learnt slopes, written as two ReLUs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary

SHAPE = (4, 5, 3)


def kinds(
    function: str, *, slopes: tuple[int, ...] = (3,), order: int = 1, half: str = "negative", more: bool = False
) -> list[str]:
    """The operations after the passes, which change no result."""
    net = Net("slopes")
    x = net.input(*SHAPE)
    above = net.add(Activation("clamp", (0.0, np.inf)), [x])
    turned = net.add(Activation(half), [x])
    below = net.add(Activation("clamp", (0.0, np.inf)), [turned])
    scaled = net.add(Binary("multiply"), [below], {"right": net.chance.normal(size=slopes)})
    made = net.add(Binary(function), [above, scaled][::order])
    graph = net.graph(made, scaled) if more else net.graph(made)
    named = passes.run(graph)
    given = {x: np.random.default_rng(1).normal(size=(6, *SHAPE)).astype(np.float32)}
    wanted, found = interpret.run(graph, given), interpret.run(named, given)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)
    return [op.kind for op in named.ops]


@pytest.mark.parametrize("slopes", [(3,), (1, 1, 3), (1,), (5, 1), SHAPE])
@pytest.mark.parametrize(("function", "order"), [("add", 1), ("add", -1), ("subtract", 1)])
def test_two_relus_with_slopes_are_one_operation(function: str, order: int, slopes: tuple[int, ...]) -> None:
    assert kinds(function, slopes=slopes, order=order) == ["prelu"]


def test_other_sums_of_relus_stay() -> None:
    assert "prelu" not in kinds("subtract", order=-1)  # slope * relu(-x) - relu(x)
    assert "prelu" not in kinds("add", half="square")
    assert "prelu" not in kinds("add", more=True)
