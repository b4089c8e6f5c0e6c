"""Layers of 16 bits on Cortex-M0 take what their kernels are priced by: counts of the emulator, which do not vary."""

from __future__ import annotations

from math import prod

import pytest

from benchmarks.elements import Maker, one
from benchmarks.nets import Net, layer_costs_on, planned, quantized
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.matmul import MatMul

BOARD = "microbit"
IMAGE = (6, 6, 16)
SAME = ((1, 1), (1, 1))


def weighted(attributes: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...], channels: int) -> Maker:
    def make(net: Net, name: str) -> str:
        weights = net.chance.normal(0, prod(kernel[:-1]) ** -0.5, kernel)
        constants = {"kernel": weights, "bias": net.chance.normal(0, 0.1, channels)}
        return net.add(attributes, [net.input(*shape)], constants, name)

    return make


LAYERS: dict[str, Maker] = {
    "add": one(Binary("add"), IMAGE, IMAGE),
    "multiply": one(Binary("multiply"), IMAGE, IMAGE),
    "affine": one(Affine(2), IMAGE, scale=16, shift=16),
    "sigmoid": one(Activation("sigmoid"), IMAGE),
    "layer norm": one(LayerNorm(1, 1e-3), (16, 64), scale=64, shift=64),
    "product": one(MatMul(), (16, 32), (32, 16)),
    "dense": weighted(Dense(), (64,), (64, 32), 32),
    "dense rows": weighted(Dense(), (10, 32), (32, 24), 24),
    "convolution": weighted(Conv2D(padding=SAME), (8, 8, 8), (3, 3, 8, 16), 16),
    "pointwise": weighted(Conv2D(), (8, 8, 16), (1, 1, 16, 24), 24),
    "depthwise": weighted(DepthwiseConv2D(padding=SAME), (8, 8, 16), (3, 3, 16, 1), 16),
}


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_what_they_are_priced_by(name: str) -> None:
    net = Net(f"priced {name}")
    graph = quantized(net.graph(LAYERS[name](net, name)), "int16")
    (price,) = (step.choice.price.cycles for step in planned(graph, BOARD).steps if step.layer == name)
    (cost,) = (layer.cost for layer in layer_costs_on(graph, BOARD) if layer.name == name)
    assert 0.85 < cost / price < 1.2, f"{cost} instructions, at a price of {price:.0f}"
