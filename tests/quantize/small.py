"""A small classifier made by hand: x[6] -> Dense relu[8] -> Dense[3] -> Softmax."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.dense import Dense
from nnbuild.ops.softmax import Softmax

SIZES = {"x": 6, "sum": 8, "h": 8, "logits": 3, "probs": 3}
LAYERS = {"x": "x", "sum": "first", "h": "first", "logits": "second", "probs": "probs"}


def classifier(scale: float = 1.0) -> Graph:
    """`scale` is that of the first layer's weights."""
    chance = np.random.default_rng(5)
    weights = {
        "k1": chance.normal(size=(6, 8)) * scale,
        "b1": chance.normal(size=8) * scale,
        "k2": chance.normal(size=(8, 3)),
        "b2": chance.normal(size=3),
    }
    ops = (
        Op("sum", Dense(), ("x",), ("sum",), {"kernel": "k1", "bias": "b1"}, layer="first"),
        Op("h", Activation("clamp", (0.0, float("inf"))), ("sum",), ("h",), layer="first"),
        Op("logits", Dense(), ("h",), ("logits",), {"kernel": "k2", "bias": "b2"}, layer="second"),
        Op("probs", Softmax(), ("logits",), ("probs",), layer="probs"),
    )
    return verify(
        Graph(
            "small",
            {name: Tensor(name, (size,), layer=LAYERS[name]) for name, size in SIZES.items()},
            {name: Constant(name, values.astype(np.float32)) for name, values in weights.items()},
            ops,
            ("x",),
            ("probs",),
        )
    )


def samples(count: int = 100) -> Array:
    return np.random.default_rng(6).normal(size=(count, 6)).astype(np.float32)
