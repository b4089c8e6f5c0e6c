"""Normalizations as Keras' layers are exported, with the mean taken times the factor and not from the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.passes.factor_out import factor_out

ROWS, SIZE = 5, 12


class Normalized(Net):
    """Rows with a mean far from 0, and what their normalization is made of."""

    def __init__(self, squares: str = "squared_difference", affine: bool = True) -> None:
        super().__init__("normalized")
        self.x = self.input(ROWS, SIZE)
        self.mean = self.column(self.x)
        if squares == "squared_difference":
            square = self.both("squared_difference", self.x, self.mean)
        else:
            square = self.add(Activation("square"), [self.both("subtract", self.x, self.mean)])
        held = self.both("add", self.column(square), np.array([1e-3]))
        self.factor = self.add(Activation("rsqrt"), [held])
        if affine:
            self.factor = self.both("multiply", self.factor, self.chance.uniform(0.5, 2, (1, SIZE)))
        self.beta = self.chance.normal(size=(1, SIZE)) if affine else None

    def column(self, x: str) -> str:
        """The mean of each row."""
        return self.add(Reshape((ROWS, 1)), [self.add(Reduce("mean", 1, 1), [x])])

    def both(self, function: str, left: str | np.ndarray, right: str | np.ndarray) -> str:
        held = {role: x for role, x in (("left", left), ("right", right)) if not isinstance(x, str)}
        return self.add(Binary(function), [x for x in (left, right) if isinstance(x, str)], held)


def added(net: Normalized) -> str:
    """As Keras 3: x * f + (-mean * f + beta)."""
    negated = net.add(Activation("negative"), [net.mean])
    rest = net.both("multiply", negated, net.factor)
    rest = rest if net.beta is None else net.both("add", rest, net.beta)
    return net.both("add", net.both("multiply", net.x, net.factor), rest)


def moved(net: Normalized) -> str:
    """As tf2onnx: with a reshape behind the negation, and the sum the other way round."""
    negated = net.add(Activation("negative"), [net.add(Reshape((ROWS,)), [net.mean])])
    rest = net.both("multiply", net.factor, net.add(Reshape((ROWS, 1)), [negated]))
    rest = rest if net.beta is None else net.both("add", rest, net.beta)
    return net.both("add", rest, net.both("multiply", net.factor, net.x))


def subtracted(net: Normalized) -> str:
    """As tf.nn.batch_normalization: x * f + (beta - mean * f)."""
    assert net.beta is not None
    rest = net.both("subtract", net.beta, net.both("multiply", net.mean, net.factor))
    return net.both("add", net.both("multiply", net.x, net.factor), rest)


Form = Callable[[Normalized], str]


def compared(graph: Graph, made: Graph) -> None:
    x = np.random.default_rng(4).normal(3, 0.5, (20, ROWS, SIZE)).astype(np.float32)
    (name,) = graph.inputs
    wanted = interpret.run(graph, {name: x}, "float64")
    found = interpret.run(made, {name: x})
    for output in graph.outputs:
        np.testing.assert_allclose(found[output], wanted[output], atol=2e-6 * np.abs(wanted[output]).max())


@pytest.mark.parametrize("squares", ["squared_difference", "square"])
@pytest.mark.parametrize(
    ("write", "affine"), [(added, True), (added, False), (moved, True), (moved, False), (subtracted, True)]
)
def test_a_normalization_becomes_one_operation(write: Form, affine: bool, squares: str) -> None:
    net = Normalized(squares, affine)
    graph = net.graph(write(net))
    assert [op.attributes for op in factor_out(graph).ops].count(Binary("subtract")) == 1
    compared(graph, factor_out(graph))
    made = passes.run(graph)
    assert [op.kind for op in made.ops] == ["layer_norm"]
    compared(graph, made)


def with_another_reader(net: Normalized) -> str:
    scaled = net.both("multiply", net.x, net.factor)
    rest = net.both("multiply", net.add(Activation("negative"), [net.mean]), net.factor)
    return net.both("multiply", net.both("add", scaled, rest), scaled)


def of_another_factor(net: Normalized) -> str:
    other = net.both("multiply", net.factor, np.array([2.0]))
    rest = net.both("multiply", net.add(Activation("negative"), [net.mean]), other)
    return net.both("add", net.both("multiply", net.x, net.factor), rest)


def not_negated(net: Normalized) -> str:
    return net.both("add", net.both("multiply", net.x, net.factor), net.both("multiply", net.mean, net.factor))


def less_a_constant(net: Normalized) -> str:
    rest = net.both("subtract", net.both("multiply", net.mean, net.factor), np.ones((1, SIZE)))
    return net.both("add", net.both("multiply", net.x, net.factor), rest)


@pytest.mark.parametrize("write", [with_another_reader, of_another_factor, not_negated, less_a_constant])
def test_other_sums_of_products_stay(write: Form) -> None:
    net = Normalized()
    graph = net.graph(write(net))
    assert len(factor_out(graph).ops) == len(graph.ops)
    compared(graph, passes.run(graph))


def test_a_difference_and_its_square_are_computed_once() -> None:
    net = Normalized()
    apart = net.both("subtract", net.x, net.mean)
    graph = net.graph(apart, net.both("multiply", apart, net.factor))
    made = factor_out(graph)
    assert [op.attributes for op in made.ops].count(Binary("squared_difference")) == 0
    compared(graph, made)


def test_a_bound_outside_of_the_root_stays_in_floats() -> None:
    """x / max(deviation, bound) is no layer normalization."""
    net = Normalized(affine=False)
    apart = net.both("subtract", net.x, net.mean)
    variance = net.column(net.add(Activation("square"), [apart]))
    root = net.add(Activation("sqrt"), [variance])
    graph = net.graph(net.both("divide", apart, net.add(Activation("clamp", (0.4, np.inf)), [root])))
    made = passes.run(graph)
    assert "layer_norm" not in [op.kind for op in made.ops]
    compared(graph, made)
