"""Transposes that meet their opposite behind other operations vanish, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nnbuild.frontend.builder import GraphBuilder
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pad import Pad
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.lay_out import lay_out
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

LAST, FIRST = Transpose((1, 2, 0)), Transpose((2, 0, 1))
CHANCE = np.random.default_rng(4)


class Net:
    """A net of one input [5, 4, 3], seen as [3, 5, 4]."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("net")
        self.x = self.add(Activation("tanh"), self.builder.input("x", (5, 4, 3)))
        self.first = self.add(FIRST, self.x)

    def add(self, attributes: Attributes, *inputs: str, **constants: Array) -> str:
        held = {
            role: self.builder.constant((f"{role} {len(self.builder._ops)}",), lambda v=v: np.asarray(v, np.float32))
            for role, v in constants.items()
        }
        with self.builder.at("layer"):
            return self.builder.one(attributes, inputs, held)

    def over(self, outer: int, attributes: Attributes, x: str) -> str:
        """Along the first axes."""
        with self.builder.along(self.builder.shape(x)[:outer]):
            return self.add(attributes, x)

    def seen(self, name: str) -> str:
        """Channels last again."""
        return self.add(LAST, name) if len(self.builder.shape(name)) == 3 else name


def numbers(*shape: int) -> Array:
    return CHANCE.normal(size=shape)


def _pair(net: Net) -> str:
    other = net.add(FIRST, net.add(Activation("sigmoid"), net.x))
    return net.add(Binary("multiply"), net.first, other)


def _chosen(net: Net) -> str:
    truth = net.add(Compare("greater"), net.first, right=numbers(3, 1, 1))
    return net.add(Select(), truth, net.first, other=numbers(1))


def _gated(net: Net) -> str:
    means = net.add(Reduce("mean", 1, 2), net.first)
    return net.add(Binary("multiply"), net.first, net.add(Reshape((3, 1, 1)), means))


def _flat(net: Net) -> str:
    return net.add(Dense(), net.add(Reshape((60,)), net.first), kernel=numbers(60, 7), bias=numbers(7))


CASES: dict[str, Callable[[Net], str]] = {
    "activation": lambda net: net.add(Activation("leaky_relu", (0.1,)), net.first),
    "affine": lambda net: net.add(Affine(0), net.first, scale=numbers(3), shift=numbers(3)),
    "affine along rows": lambda net: net.add(Affine(1), net.first, scale=numbers(5), shift=numbers(5)),
    "constant of each channel": lambda net: net.add(Binary("subtract"), net.first, left=numbers(3, 1, 1)),
    "constant of each column": lambda net: net.add(Binary("add"), net.first, right=numbers(4)),
    "one constant": lambda net: net.add(Binary("divide"), net.first, right=numbers(1)),
    "whole constant": lambda net: net.add(Binary("add"), net.first, right=numbers(3, 5, 4)),
    "two tensors": _pair,
    "choice": _chosen,
    "gate": _gated,
    "slopes": lambda net: net.add(PReLU(), net.first, slope=numbers(3, 1, 1)),
    "slopes of all": lambda net: net.add(PReLU(), net.first, slope=numbers(3, 5, 1)),
    "concatenation": lambda net: net.add(Concatenate(0), net.first, net.add(Activation("square"), net.first)),
    "softmax of channels": lambda net: net.add(Softmax(0), net.first),
    "softmax of columns": lambda net: net.add(Softmax(2), net.first),
    "softmax of images": lambda net: net.add(Softmax(1, 2), net.first),
    "means of images": lambda net: net.add(Reduce("mean", 1, 2), net.first),
    "greatest channel": lambda net: net.add(Reduce("max", 0, 1, keep=True), net.first),
    "slice": lambda net: net.add(Slice((1, 4, 0), (1, -2, 1), (2, 3, 4)), net.first),
    "border": lambda net: net.add(Pad(((0, 0), (1, 0), (2, 3)), 0.5), net.first),
    "repeated": lambda net: net.add(Repeat((1, 2, 3)), net.first),
    "flat": _flat,
    "normalized": lambda net: net.add(LayerNorm(3), net.first, scale=numbers(3, 5, 4), shift=numbers(3, 5, 4)),
    "rows of images": lambda net: net.over(1, Transpose((1, 0)), net.over(1, Transpose((1, 0)), net.first)),
}


def moves(graph: Graph) -> int:
    return sum(op.kind == "transpose" for op in graph.ops)


@pytest.mark.parametrize("case", CASES)
def test_they_vanish(case: str) -> None:
    net = Net()
    graph = verify(net.builder.finish([net.seen(CASES[case](net))]))
    made = verify(lay_out(graph))
    assert moves(graph) > 0 == moves(made)
    inputs = {"x": CHANCE.normal(size=(2, 5, 4, 3))}
    was, now = (interpret.run(each, inputs, "float64")[each.outputs[0]] for each in (graph, made))
    np.testing.assert_allclose(now, was, rtol=1e-12, atol=1e-12)
    assert made.outputs == graph.outputs


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("case", CASES)
def test_integers_are_the_same(case: str, form: str) -> None:
    net = Net()
    graph = verify(net.builder.finish([net.seen(CASES[case](net))]))
    given = {"x": CHANCE.normal(size=(8, 5, 4, 3)).astype(np.float32)}
    whole = quantize_with(graph, Recipe(form, float_edge=True), calibrate(graph, lambda: [given], "minmax", 8))
    made = verify(lay_out(whole))
    assert moves(made) == 0
    np.testing.assert_array_equal(*(interpret.run(each, given)[each.outputs[0]] for each in (whole, made)))


def test_an_output_keeps_its_order() -> None:
    """Also where others read it."""
    net = Net()
    y = net.add(Activation("sigmoid"), net.first)
    z = net.seen(net.add(Activation("square"), y))
    graph = verify(net.builder.finish([y, z]))
    made = verify(lay_out(graph))
    assert (moves(graph), moves(made)) == (2, 1)
    inputs = {"x": CHANCE.normal(size=(2, 5, 4, 3))}
    was, now = interpret.run(graph, inputs), interpret.run(made, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(now[name], was[name])


def test_what_saves_nothing_stays() -> None:
    net = Net()
    graph = net.builder.finish([net.add(Activation("square"), net.first)])
    assert lay_out(graph) is graph


def test_layers_keep_their_names() -> None:
    net = Net()
    since = net.builder.mark()
    (y,) = net.builder.label([net.add(FIRST, net.add(Activation("square"), net.x))], "squares", since)
    graph = net.builder.finish([net.seen(net.add(Activation("tanh"), y))])
    made = lay_out(graph)
    assert moves(made) == 0
    assert made.tensors["squares"].layer == "squares"
    assert replace(made.tensors["squares"], shape=(3, 5, 4)) == graph.tensors["squares"]


def test_an_input_without_a_layer_keeps_its_name() -> None:
    """Which a transpose of it has, where another one turns it back."""
    net = Net()
    tensors = {name: replace(tensor, layer=None) for name, tensor in net.builder._tensors.items()}
    net.builder._tensors.update(tensors)
    since = net.builder.mark()
    (turned,) = net.builder.label([net.add(FIRST, "x")], "turned", since)
    graph = net.builder.finish([net.add(Activation("square"), net.seen(turned))])
    assert verify(lay_out(graph)).ops[-1].inputs == ("x",)


def test_integers_stay_integers() -> None:
    net = Net()
    truth = net.add(Compare("less"), net.first, right=numbers(3, 1, 1))
    graph = verify(net.builder.finish([net.seen(net.builder.as_float(truth))]))
    made = verify(lay_out(graph))
    assert (moves(made), [op.kind for op in made.ops]) == (0, ["activation", "compare", "convert"])
    assert isinstance(made.ops[-1].attributes, Convert)


def test_numbers_without_axes_stay() -> None:
    net = Net()
    row = net.add(Reshape((60,)), net.seen(net.add(Activation("square"), net.first)))
    graph = net.builder.finish([net.add(Reshape(()), net.add(Slice((3,), (1,), (1,)), row))])
    assert lay_out(graph) is graph
