"""Functions written as several operations become one, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.passes.name_functions import name_functions

Write = Callable[[Net, str], str]


def of(net: Net, function: str, x: str, *parameters: float) -> str:
    return net.add(Activation(function, parameters), [x])


def both(net: Net, function: str, x: str, y: str | float) -> str:
    if isinstance(y, str):
        return net.add(Binary(function), [x, y])
    return net.add(Binary(function), [x], {"right": np.array([y])})


def gated(function: str) -> Write:
    return lambda net, x: both(net, "multiply", x, of(net, function, x))


def divided(net: Net, x: str) -> str:
    held = of(net, "clamp", both(net, "add", x, 3.0), 0.0, 6.0)
    return both(net, "divide", both(net, "multiply", x, held), 6.0)


def sixth(net: Net, x: str) -> str:
    """As converters write a hard sigmoid: its slope has single precision."""
    return of(net, "clamp", both(net, "add", both(net, "multiply", x, float(np.float32(1 / 6))), 0.5), 0.0, 1.0)


def mish(net: Net, x: str) -> str:
    return both(net, "multiply", x, of(net, "tanh", of(net, "softplus", x)))


def gelu(net: Net, x: str) -> str:
    upper = both(net, "add", of(net, "erf", both(net, "divide", x, 2**0.5)), 1.0)
    return both(net, "multiply", both(net, "multiply", x, upper), 0.5)


def gelu_by_tanh(net: Net, x: str) -> str:
    cube = both(net, "multiply", x, of(net, "square", x))
    inner = both(net, "multiply", both(net, "add", x, both(net, "multiply", cube, 0.044715)), (2 / np.pi) ** 0.5)
    half = both(net, "multiply", x, 0.5)
    return both(net, "multiply", half, both(net, "add", of(net, "tanh", inner), 1.0))


def read_twice(net: Net, x: str) -> str:
    gate = of(net, "sigmoid", x)
    return both(net, "add", both(net, "multiply", x, gate), of(net, "square", gate))


def steeper(net: Net, x: str) -> str:
    return both(net, "multiply", x, of(net, "sigmoid", both(net, "multiply", x, 1.702)))


def within(low: float, high: float) -> Write:
    """As files write a logarithm of probabilities: what is cut off matters there."""
    return lambda net, x: of(net, "clamp", of(net, "sigmoid", x), low, high)


def raised(net: Net, x: str) -> str:
    return both(net, "add", of(net, "sigmoid", x), 1e-7)


def inverse(net: Net, x: str) -> str:
    return both(net, "divide", of(net, "exponential", x), both(net, "add", of(net, "exponential", x), 1.0))


WRITTEN: dict[str, tuple[Write, str]] = {
    "x sigmoid(x)": (gated("sigmoid"), "swish"),
    "x hard_sigmoid(x)": (gated("hard_sigmoid"), "hard_swish"),
    "x clip(x + 3, 0, 6) / 6": (divided, "hard_swish"),
    "clip(x / 6 + 0.5, 0, 1)": (sixth, "hard_sigmoid"),
    "x clip(x / 6 + 0.5, 0, 1)": (lambda net, x: both(net, "multiply", x, sixth(net, x)), "hard_swish"),
    "x tanh(softplus(x))": (mish, "mish"),
    "by erf": (gelu, "gelu"),
    "by tanh": (gelu_by_tanh, "gelu_tanh"),
    "e**x / (e**x + 1)": (inverse, "sigmoid"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_chain_becomes_one_function(name: str) -> None:
    write, function = WRITTEN[name]
    net = Net("net")
    x = of(net, "absolute", net.input(3, 4))
    graph = net.graph(of(net, "square", write(net, x)))
    made = name_functions(graph)
    found = [op.attributes.function for op in made.ops if isinstance(op.attributes, Activation)]
    assert found == ["absolute", function, "square"] and len(made.ops) == 3
    given = {graph.inputs[0]: np.random.default_rng(1).normal(scale=3.0, size=(5, 3, 4))}
    wanted, got = (interpret.run(g, given, "float64")[graph.outputs[0]] for g in (graph, made))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("write", [read_twice, steeper, raised, within(1e-7, 1.0), within(0.0, 1 - 1.2e-7)])
def test_others_stay(write: Write) -> None:
    net = Net("net")
    graph = net.graph(write(net, net.input(3, 4)))
    assert name_functions(graph).ops == graph.ops
