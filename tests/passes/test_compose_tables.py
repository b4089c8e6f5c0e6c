"""Steps that make a function of one byte become one look-up with the same bits, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.nets import Net, quantized
from nnbuild import passes
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.prelu import PReLU
from nnbuild.passes.compose_tables import compose_tables
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.quantize import Recipe, quantize_with
from nnbuild.streaming.time_axis import RowWise, time_behaviour
from tests.passes.test_name_functions import both, of

Write = Callable[[Net, str], str]


def quick_gelu(net: Net, x: str) -> str:
    return both(net, "multiply", x, of(net, "sigmoid", both(net, "multiply", x, 1.702)))


def lines(net: Net, x: str) -> str:
    return both(net, "multiply", of(net, "clamp", both(net, "add", x, 3.0), 0.0, 6.0), x)


def sloped(net: Net, x: str) -> str:
    gate = net.add(PReLU(), [of(net, "tanh", x)], {"slope": np.full((1, 1), 0.1)})
    return both(net, "add", gate, x)


def of_two(net: Net, function: str = "add") -> str:
    return both(net, function, net.input(3, 4), net.input(3, 4))


def same_bits(graph: Graph, made: Graph) -> None:
    chance = np.random.default_rng(1)
    inputs = {name: chance.integers(-128, 128, (64, 3, 4)).astype(np.int8) for name in graph.inputs}
    was, now = interpret.run(graph, inputs), interpret.run(made, inputs)
    for output in graph.outputs:
        np.testing.assert_array_equal(now[output], was[output])


def kinds(graph: Graph) -> list[str]:
    return [op.attributes.function if isinstance(op.attributes, Activation) else op.kind for op in graph.ops]


@pytest.mark.parametrize("write", [quick_gelu, lines, sloped])
def test_steps_become_one_look_up(write: Write) -> None:
    net = Net("net")
    graph = quantized(net.graph(write(net, of_two(net))), "int8")
    made = verify(compose_tables(graph))
    assert kinds(made) == ["binary", "lookup"]
    same_bits(graph, made)


def test_streams_compute_look_ups_row_by_row() -> None:
    net = Net("net")
    made = compose_tables(quantized(net.graph(quick_gelu(net, of_two(net))), "int8"))
    assert time_behaviour(made, made.ops[-1], 0) == RowWise(0)


def test_what_stays_in_floats_between_two_conversions_is_looked_up() -> None:
    net = Net("net")
    folded = passes.run(net.graph(of(net, "negative", of(net, "softplus", of_two(net)))))
    ranges = dict.fromkeys(folded.tensors, Range(-4.0, 5.0))
    middle = next(op.layer for op in folded.ops if isinstance(op.attributes, Activation))
    graph = quantize_with(folded, Recipe(form="int8", keep={middle: "float"}), ranges)
    assert kinds(graph).count("convert") == 2
    made = verify(compose_tables(graph))
    assert kinds(made) == ["binary", "lookup"]
    same_bits(graph, made)


def test_what_vectors_compute_as_fast_stays() -> None:
    net = Net("net")
    x = of_two(net)
    graph = quantized(net.graph(both(net, "add", of(net, "absolute", x), x)), "int8")
    assert compose_tables(graph).ops == graph.ops


@pytest.mark.parametrize("form", ["float", "int16"])
def test_other_numbers_stay(form: str) -> None:
    net = Net("net")
    graph = quantized(net.graph(quick_gelu(net, of_two(net))), form)
    assert compose_tables(graph).ops == graph.ops


def test_what_others_read_stays() -> None:
    net = Net("net")
    gate = of(net, "sigmoid", of_two(net))
    graph = quantized(net.graph(of(net, "square", gate), gate), "int8")
    assert compose_tables(graph).ops == graph.ops
    other = quantized(net.graph(of(net, "square", gate), both(net, "multiply", gate, net.input(3, 4))), "int8")
    assert "lookup" not in kinds(compose_tables(other))
