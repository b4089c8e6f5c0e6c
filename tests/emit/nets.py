"""Small whole networks for the printed C: a convolution net, a recurrent one, and one with hostile names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax
from tests.support.graphs import single

Step = tuple[str, Attributes, Mapping[str, Array]]


def chain(name: str, source: Shape, steps: Sequence[Step]) -> Graph:
    """Operations one after the other."""
    tensors, constants, ops = {"x": Tensor("x", source)}, {}, []
    before = "x"
    for label, attributes, held in steps:
        for role, value in held.items():
            constants[f"{label}_{role}"] = Constant(f"{label}_{role}", value)
        shapes = attributes.shapes([tensors[before].shape], {role: value.shape for role, value in held.items()})
        tensors[label] = Tensor(label, shapes[0])
        roles = {role: f"{label}_{role}" for role in held}
        ops.append(Op(f"{label}_op", attributes, (before,), (label,), roles, layer=label))
        before = label
    return verify(Graph(name, tensors, constants, tuple(ops), ("x",), (before,)))


def ramp(*shape: int) -> Array:
    """Values that are easy to read in a golden file: eighths, so that every digit is exact."""
    return ((np.arange(np.prod(shape)) % 15 - 7) / 8).astype(np.float32).reshape(shape)


def convolutional() -> Graph:
    conv = Conv2D(padding=((1, 1), (1, 1)), clamp=Clamp(low=0.0))
    return chain(
        "tiny conv",
        (4, 4, 1),
        [
            ("conv", conv, {"kernel": ramp(3, 3, 1, 2), "bias": ramp(2)}),
            ("pool", Pool2D("max"), {}),
            ("flat", Reshape((8,)), {}),
            ("head", Dense(), {"kernel": ramp(8, 3), "bias": ramp(3)}),
            ("choice", Softmax(), {}),
        ],
    )


def dense() -> Graph:
    return chain(
        "tiny dense",
        (3,),
        [
            ("first", Dense(Clamp(0.0, 6.0)), {"kernel": ramp(3, 2), "bias": ramp(2)}),
            ("bent", Activation("tanh"), {}),
        ],
    )


def recurrent() -> Graph:
    """An LSTM of one step a run that carries its state."""
    held = {"kernel": ramp(1, 8), "recurrent": ramp(2, 8), "bias": ramp(8)}
    return single(LSTM(units=2), [(1, 1), (2,), (2,)], held, stateful=2)


HOSTILE = [
    "*/ int evil; /*",
    "a\nb\r\\",
    "??/",
    'quote"d',
    "\u00e9t\u00e9 \u2028",
    "%s%n",
    "",
    "x" * 200,
    "int",
    "/*/*",
]


def hostile() -> Graph:
    """Names as a model file may hold them, in every place a name can have."""
    steps = [(f"{name}{index}", Activation("tanh"), {}) for index, name in enumerate(HOSTILE)]
    graph = chain(HOSTILE[0], (3,), steps)
    renamed = {"x": Tensor("*/x\n", (3,))}
    tensors = {t.name: t for t in (renamed.get(t.name, t) for t in graph.tensors.values())}
    first = graph.ops[0]
    ops = (Op(first.name, first.attributes, ("*/x\n",), first.outputs, {}, first.layer), *graph.ops[1:])
    return verify(Graph(graph.name, tensors, graph.constants, ops, ("*/x\n",), graph.outputs))


NETS = {"conv": convolutional, "dense": dense, "lstm": recurrent}
