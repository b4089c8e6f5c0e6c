"""Prices of layers of floats on cores without a unit for them, against what an emulator counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.nets import Net, layer_costs_on, planned, quantized
from nnbuild.model.graph import Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.softmax import Softmax

ROW: Shape = (64,)
LAYERS: Mapping[str, tuple[Attributes, int, Mapping[str, Shape]]] = {
    "multiply": (Binary("multiply"), 2, {}),
    "add": (Binary("add"), 2, {}),
    "dense": (Dense(), 1, {"kernel": (64, 32), "bias": (32,)}),
    "sigmoid": (Activation("sigmoid"), 1, {}),
    "softmax": (Softmax(), 1, {}),
    "mean": (Reduce("mean", 0, 1), 1, {}),
    "layer norm": (LayerNorm(1, 1e-3), 1, {"scale": ROW, "shift": ROW}),
}
"""Operation, inputs and constants."""
CLOSE = 1.5


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.parametrize("board", ["microbit", "stm32f100", "rv32"])
def test_prices_are_near_what_is_counted(board: str) -> None:
    net, outputs = Net("soft_floats"), []
    for name, (attributes, inputs, constants) in LAYERS.items():
        values = {role: net.chance.normal(1.0, 0.3, size=shape) for role, shape in constants.items()}
        outputs.append(net.add(attributes, [net.input(*ROW) for _ in range(inputs)], values, name))
    graph = quantized(net.graph(*outputs), "float")
    prices = {step.layer: step.choice.price.cycles for step in planned(graph, board).steps}
    for layer in layer_costs_on(graph, board):
        ratio = prices[layer.name] / layer.cost
        assert 1 / CLOSE < ratio < CLOSE, f"{layer.name}: {prices[layer.name]:.0f} priced, {layer.cost:.0f} counted"
