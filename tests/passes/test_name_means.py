"""Sums that are divided by the number of what they add up."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.ops import interpret
from nnbuild.ops.binary import Binary
from nnbuild.ops.reduce import Reduce
from nnbuild.passes.name_means import name_means


def functions(function: str, role: str, number: float, *, read_twice: bool = False) -> list[str]:
    """The reductions of a graph after the pass, which changes no result but by roundings."""
    net = Net("sums")
    total = net.add(Reduce("sum", 1, 1), [net.input(5, 12)])
    made = net.add(Binary(function), [total], {role: np.array([number])})
    graph = net.graph(made, total) if read_twice else net.graph(made)
    named = name_means(graph)
    x = {graph.inputs[0]: np.random.default_rng(1).normal(size=(4, 5, 12)).astype(np.float32)}
    wanted, found = interpret.run(graph, x), interpret.run(passes.run(graph), x)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)
    return [op.attributes.function for op in named.ops if isinstance(op.attributes, Reduce | Binary)]


@pytest.mark.parametrize(
    ("function", "role", "number"),
    [("divide", "right", 12), ("multiply", "right", 1 / 12), ("multiply", "left", 1 / 12)],
)
def test_a_share_of_a_sum_is_a_mean(function: str, role: str, number: float) -> None:
    assert functions(function, role, number) == ["mean"]


@pytest.mark.parametrize(("function", "role", "number"), [("divide", "right", 11), ("divide", "left", 12)])
def test_other_quotients_stay(function: str, role: str, number: float) -> None:
    assert functions(function, role, number) == ["sum", function]


def test_a_sum_that_is_read_stays() -> None:
    assert functions("divide", "right", 12, read_twice=True) == ["sum", "divide"]
