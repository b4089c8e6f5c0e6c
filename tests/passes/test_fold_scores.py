"""Factors of scores, behind the product of queries and keys."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.fold_scores import fold_scores


class Scores(Net):
    """Of two heads of 4 numbers over 5 tokens."""

    def __init__(self, clamp: Clamp = NO_CLAMP) -> None:
        super().__init__("scores")
        self.x = self.input(5, 6)
        made = [self.heads(clamp), self.heads(clamp)]
        self.tokens, heads = [name for name, _ in made], [name for _, name in made]
        self.scores = self.add(MatMul(turned=True), heads)

    def heads(self, clamp: Clamp) -> tuple[str, str]:
        values = {"kernel": self.chance.normal(size=(6, 8)), "bias": self.chance.normal(size=8)}
        made = self.add(Dense(clamp), [self.x], values)
        return made, self.add(Transpose((1, 0, 2)), [self.add(Reshape((5, 2, 4)), [made])])

    def scaled(self, function: str, role: str, number: float) -> str:
        return self.add(Binary(function), [self.scores], {role: np.array([number])})


def folded(graph: Graph) -> bool:
    """Whether the factor is gone, after a pass that changes no result."""
    made = fold_scores(graph)
    x = {graph.inputs[0]: np.random.default_rng(1).normal(size=(4, 5, 6)).astype(np.float32)}
    wanted, found = interpret.run(graph, x, "float64"), interpret.run(made, x, "float64")
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-5)
    return "binary" not in [op.kind for op in made.ops]


@pytest.mark.parametrize(
    ("function", "role", "number"), [("multiply", "right", 0.5), ("multiply", "left", -2.0), ("divide", "right", 3.0)]
)
def test_a_factor_becomes_one_of_the_weights(function: str, role: str, number: float) -> None:
    net = Scores()
    assert folded(net.graph(net.scaled(function, role, number)))


def test_it_is_folded_into_the_one_that_nothing_else_reads() -> None:
    net = Scores()
    assert folded(net.graph(net.scaled("multiply", "right", 0.5), net.tokens[0]))


@pytest.mark.parametrize("case", ["both are read", "the product is read", "clamped", "a reciprocal", "a sum"])
def test_others_stay(case: str) -> None:
    net = Scores(Clamp(0.0) if case == "clamped" else NO_CLAMP)
    function, role = {"a reciprocal": ("divide", "left"), "a sum": ("add", "right")}.get(case, ("multiply", "right"))
    ends = {"both are read": net.tokens, "the product is read": [net.scores]}.get(case, [])
    assert not folded(net.graph(net.scaled(function, role, 0.5), *ends))
