"""Normalizations as Keras' layers are exported, with the mean taken times the factor and not from the values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.differences_once import differences_once
from nnbuild.passes.factor_out import factor_out
from nnbuild.passes.remove_dead import remove_dead

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


def gathered(graph: Graph) -> Graph:
    return remove_dead(differences_once(factor_out(graph)))


def clamped(net: Normalized) -> str:
    """As TFLite, whose sums have an activation."""
    rest = net.both("multiply", net.add(Activation("negative"), [net.mean]), net.factor)
    rest = rest if net.beta is None else net.both("add", rest, net.beta)
    return net.add(Binary("add", Clamp(0.0)), [net.both("multiply", net.x, net.factor), rest])


def laid_out(net: Normalized) -> str:
    """As tf2onnx between convolutions: the factors are moved into another layout before they meet the values."""
    turned = net.add(Transpose((1, 0)), [net.factor])
    mean = net.add(Reshape((1, ROWS)), [net.add(Activation("negative"), [net.add(Reshape((ROWS,)), [net.mean])])])
    rest = net.both("multiply", mean, turned)
    rest = rest if net.beta is None else net.both("add", rest, net.beta.reshape(SIZE, 1))
    rest = net.add(Transpose((1, 0)), [rest])
    return net.both("add", net.both("multiply", net.x, net.add(Transpose((1, 0)), [turned])), rest)


Form = Callable[[Normalized], str]


def compared(graph: Graph, made: Graph) -> None:
    (name,) = graph.inputs
    x = np.random.default_rng(4).normal(3, 0.5, (20, *graph.tensors[name].shape)).astype(np.float32)
    wanted = interpret.run(graph, {name: x}, "float64")
    found = interpret.run(made, {name: x})
    for output in graph.outputs:
        np.testing.assert_allclose(found[output], wanted[output], atol=2e-6 * np.abs(wanted[output]).max())


@pytest.mark.parametrize("squares", ["squared_difference", "square"])
@pytest.mark.parametrize(
    ("write", "affine"), [*product([added, moved, clamped, laid_out], [True, False]), (subtracted, True)]
)
def test_a_normalization_becomes_one_operation(write: Form, affine: bool, squares: str) -> None:
    net = Normalized(squares, affine)
    graph = net.graph(write(net))
    assert [op.attributes for op in gathered(graph).ops].count(Binary("subtract")) == 1
    compared(graph, gathered(graph))
    made = passes.run(graph)
    assert made.ops[0].kind == "layer_norm" and len(made.ops) == 1 + (write is clamped)
    compared(graph, made)


@pytest.mark.parametrize("images", [True, False])
def test_groups_of_channels_are_normalized_by_one_operation(images: bool) -> None:
    """The factors have one element for each group, and meet channels: as vectors of them, or as groups of them."""
    net = Net("groups")
    x = net.input(4, 6, 12)
    seen = net.add(Reshape((24, 3, 4)), [x])

    def mean(y: str) -> str:
        """Of each group."""
        rows = net.add(Reshape((3, 96)), [net.add(Transpose((1, 0, 2)), [y])])
        return net.add(Reduce("mean", 1, 1), [rows])

    def both(function: str, left: str, right: str | np.ndarray) -> str:
        held = {} if isinstance(right, str) else {"right": right}
        return net.add(Binary(function), [left] if held else [left, str(right)], held)

    middle = mean(seen)
    squares = both("squared_difference", seen, net.add(Reshape((1, 3, 1)), [middle]))
    root = net.add(Activation("rsqrt"), [both("add", mean(squares), np.array([1e-3]))])
    gamma, beta = net.chance.uniform(0.5, 2, (3, 4)), net.chance.normal(size=(3, 4))
    factor = both("multiply", net.add(Reshape((3, 1)), [root]), gamma)
    rest = both("multiply", net.add(Reshape((3, 1)), [net.add(Activation("negative"), [middle])]), factor)
    rest = both("add", rest, beta)
    if images:
        factor, rest = (net.add(Reshape((1, 1, 12)), [name]) for name in (factor, rest))
        made = both("add", both("multiply", x, factor), rest)
    else:
        made = net.add(Reshape((4, 6, 12)), [both("add", both("multiply", seen, factor), rest)])
    graph = net.graph(made)
    found = [op.kind for op in passes.run(graph).ops if op.kind not in ("reshape", "transpose")]
    assert found == ["layer_norm", "affine"]
    compared(graph, passes.run(graph))


@pytest.mark.parametrize("affine", [True, False])
def test_a_root_mean_square_times_a_gamma_is_found(affine: bool) -> None:
    net = Normalized(affine=affine)
    square = net.add(Activation("square"), [net.x])
    factor = net.add(Activation("rsqrt"), [net.both("add", net.column(square), np.array([1e-3]))])
    factor = net.both("multiply", factor, net.chance.uniform(0.5, 2, (1, SIZE))) if affine else factor
    graph = net.graph(net.both("multiply", net.x, factor))
    assert [op.kind for op in passes.run(graph).ops] == ["layer_norm"]
    compared(graph, passes.run(graph))


@pytest.mark.parametrize("affine", [True, False])
def test_values_that_are_moved_before_they_meet_their_factors(affine: bool) -> None:
    """They are normalized as they lie, and moved then."""
    net = Normalized(affine=affine)
    x, factor = (net.add(Transpose((1, 0)), [name]) for name in (net.x, net.factor))
    mean = net.add(Reshape((1, ROWS)), [net.add(Activation("negative"), [net.mean])])
    rest = net.both("multiply", mean, factor)
    rest = rest if net.beta is None else net.both("add", rest, net.beta.reshape(SIZE, 1))
    graph = net.graph(net.both("add", net.both("multiply", x, factor), rest))
    made = passes.run(graph)
    assert [op.kind for op in made.ops] == ["layer_norm", "transpose"]
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
    assert len(gathered(graph).ops) == len(graph.ops)
    compared(graph, passes.run(graph))


def test_a_difference_and_its_square_are_computed_once() -> None:
    net = Normalized()
    apart = net.both("subtract", net.x, net.mean)
    graph = net.graph(apart, net.both("multiply", apart, net.factor))
    made = gathered(graph)
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


def test_long_sums_are_no_obstacle() -> None:
    """A loop that adds up may be unrolled to a thousand additions, each of which only the next one reads."""
    net = Net("long")
    x = net.input(4, 3)
    y = net.add(Activation("tanh"), [x])
    for _ in range(1200):
        y = net.add(Binary("add"), [y, x])
    graph = net.graph(
        net.add(Binary("add"), [net.add(Binary("multiply"), [x, net.add(Activation("sigmoid"), [x])]), y])
    )
    given = {x: np.random.default_rng(4).normal(size=(2, 4, 3))}
    wanted, found = (interpret.run(each, given, "float64") for each in (graph, factor_out(graph)))
    np.testing.assert_allclose(found[graph.outputs[0]], wanted[graph.outputs[0]])
