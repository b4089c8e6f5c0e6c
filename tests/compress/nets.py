"""A network with every kind of weights, made by hand."""

from __future__ import annotations

from math import inf

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax

SAME = ((1, 1), (1, 1))
WEIGHTS = {
    "conv/kernel": (3, 3, 4, 16),
    "grouped/kernel": (3, 3, 8, 16),
    "depthwise/kernel": (3, 3, 16, 2),
    "up/kernel": (2, 2, 12, 32),
    "lstm/kernel": (144, 48),
    "lstm/recurrent": (12, 48),
    "gru/kernel": (12, 36),
    "gru/recurrent": (12, 36),
    "dense/kernel": (12, 24),
    "last/kernel": (24, 5),
}
BIASES = {"conv": 16, "grouped": 16, "up": 12, "lstm": 48, "gru": (2, 36), "dense": 24, "last": 5}


def many() -> Graph:
    """x[6, 6, 4], convolutions of all kinds, rows read by an LSTM and a GRU, dense layers, probs[5]."""
    chance = np.random.default_rng(7)
    values: dict[str, Array] = {n: chance.laplace(size=s) / np.sqrt(np.prod(s[:-1])) for n, s in WEIGHTS.items()}
    values["conv/kernel"][..., 3] = 0  # a dead channel
    values |= {f"{layer}/bias": 0.1 * chance.normal(size=size) for layer, size in BIASES.items()}
    relu = Clamp(low=0.0)
    steps: list[tuple[str, object, tuple[str, ...], dict[str, tuple[int, ...]]]] = [
        ("conv", Conv2D(padding=SAME, clamp=relu), ("x",), {"conv": (6, 6, 16)}),
        ("grouped", Conv2D(padding=SAME, groups=2, clamp=relu), ("conv",), {"grouped": (6, 6, 16)}),
        ("depthwise", DepthwiseConv2D(padding=SAME), ("grouped",), {"depthwise": (6, 6, 32)}),
        ("up", Conv2DTranspose((12, 12), (2, 2), clamp=relu), ("depthwise",), {"up": (12, 12, 12)}),
        ("rows", Reshape((12, 144)), ("up",), {"rows": (12, 144)}),
        ("lstm", LSTM(units=12, sequences=True), ("rows",), {"lstm": (12, 12), "lh": (12,), "lc": (12,)}),
        ("gru", GRU(units=12), ("lstm",), {"gru": (12,)}),
        ("dense", Dense(), ("gru",), {"dense": (24,)}),
        ("relu", Activation("clamp", (0.0, inf)), ("dense",), {"relu": (24,)}),
        ("last", Dense(), ("relu",), {"last": (5,)}),
        ("probs", Softmax(), ("last",), {"probs": (5,)}),
    ]
    tensors = {"x": Tensor("x", (6, 6, 4))}
    ops = []
    for name, attributes, inputs, outputs in steps:
        tensors |= {each: Tensor(each, shape) for each, shape in outputs.items()}
        roles = {role: f"{name}/{role}" for role in ("kernel", "recurrent", "bias") if f"{name}/{role}" in values}
        ops.append(Op(name, attributes, inputs, tuple(outputs), roles, name))  # type: ignore[type-var]
    constants = {name: Constant(name, np.asarray(value, np.float32)) for name, value in values.items()}
    return verify(Graph("many", tensors, constants, tuple(ops), ("x",), ("probs",)))
