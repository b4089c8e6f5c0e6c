"""Networks with weights as trained ones have them: scales far apart, channels that are dead or nearly so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nnbuild.jobs import pipeline
from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.base import NO_CLAMP, Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import Padding, same_padding

RELU = Clamp(0.0, None)


class Net:
    """A graph under construction; every method adds a layer and gives its output's name."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.chance = np.random.default_rng(seed)
        self.tensors = {"x": Tensor("x", shape)}
        self.constants: dict[str, Constant] = {}
        self.ops: list[Op] = []

    def shape(self, name: str) -> Shape:
        return self.tensors[name].shape

    def add(self, name: str, attributes: Attributes, inputs: tuple[str, ...], **constants: Array) -> str:
        held = {role: Constant(f"{name} {role}", value.astype(np.float32)) for role, value in constants.items()}
        shapes = attributes.shapes([self.shape(x) for x in inputs], {r: c.data.shape for r, c in held.items()})
        self.tensors[name] = Tensor(name, shapes[0], layer=name)
        self.constants |= {constant.name: constant for constant in held.values()}
        roles = {role: constant.name for role, constant in held.items()}
        self.ops.append(Op(name, attributes, inputs, (name,), roles, layer=name))
        return name

    def weights(self, shape: Shape, fan: int) -> Array:
        """Channels whose scales lie far apart; one is dead, one nearly."""
        scales = 2.0 ** self.chance.uniform(-2, 1, shape[-1])
        scales[:1] *= 0 if shape[-1] > 3 else 1
        scales[1:2] *= 1e-4 if shape[-1] > 3 else 1
        scales[2:3] *= 1e-9 if shape[-1] > 5 else 1
        return np.asarray(self.chance.normal(0, 1, shape) * scales / np.sqrt(fan))

    def _padding(self, x: str, kernel: tuple[int, int], stride: int, same: bool) -> Padding:
        if not same:
            return (0, 0), (0, 0)
        height, width = self.shape(x)[:2]
        return same_padding(height, kernel[0], stride), same_padding(width, kernel[1], stride)

    def conv(
        self,
        name: str,
        x: str,
        filters: int,
        kernel: int,
        stride: int = 1,
        same: bool = True,
        clamp: Clamp = RELU,
        dilation: tuple[int, int] = (1, 1),
    ) -> str:
        depth = self.shape(x)[2]
        weights = self.weights((kernel, kernel, depth, filters), kernel * kernel * depth)
        padding = self._padding(x, (kernel, kernel), stride, same)
        op = Conv2D(strides=(stride, stride), padding=padding, clamp=clamp, dilation=dilation)
        return self.add(name, op, (x,), kernel=weights, bias=self.chance.normal(0, 0.1, filters))

    def depthwise(self, name: str, x: str, kernel: int, stride: int = 1) -> str:
        depth = self.shape(x)[2]
        weights = self.weights((kernel, kernel, 1, depth), kernel * kernel).transpose(0, 1, 3, 2)
        padding = self._padding(x, (kernel, kernel), stride, True)
        op = DepthwiseConv2D(strides=(stride, stride), padding=padding, clamp=RELU)
        return self.add(name, op, (x,), kernel=weights, bias=self.chance.normal(0, 0.1, depth))

    def pool(self, name: str, x: str, window: int, stride: int, function: str = "max", same: bool = False) -> str:
        padding = self._padding(x, (window, window), stride, same)
        op = Pool2D(function=function, window=(window, window), strides=(stride, stride), padding=padding)
        return self.add(name, op, (x,))

    def sum(self, name: str, a: str, b: str) -> str:
        return self.add(name, Binary(function="add", clamp=RELU), (a, b))

    def join(self, name: str, *inputs: str) -> str:
        return self.add(name, Concatenate(axis=2), inputs)

    def dense(self, name: str, x: str, units: int, clamp: Clamp = NO_CLAMP) -> str:
        size = int(np.prod(self.shape(x)))
        if len(self.shape(x)) > 1:
            x = self.add(f"{name} flat", Reshape(shape=(size,)), (x,))
        weights = self.weights((size, units), size)
        return self.add(name, Dense(clamp=clamp), (x,), kernel=weights, bias=self.chance.normal(0, 0.1, units))

    def graph(self, output: str) -> Graph:
        return verify(Graph("net", self.tensors, self.constants, tuple(self.ops), ("x",), (output,)))


def lenet() -> Graph:
    net = Net((28, 28, 1), 1)
    x = net.pool("pool1", net.conv("conv1", "x", 6, 5), 2, 2)
    x = net.pool("pool2", net.conv("conv2", x, 16, 5, same=False), 2, 2)
    x = net.dense("fc1", x, 120, RELU)
    return net.graph(net.dense("fc3", net.dense("fc2", x, 84, RELU), 10))


def cifarnet() -> Graph:
    net = Net((32, 32, 3), 2)
    x = net.pool("pool1", net.conv("conv1", "x", 32, 5), 3, 2, same=True)
    x = net.pool("pool2", net.conv("conv2", x, 32, 5), 3, 2, "average")
    x = net.pool("pool3", net.conv("conv3", x, 64, 5), 3, 2, "average")
    return net.graph(net.dense("fc", x, 10))


def resnet50_block() -> Graph:
    """A bottleneck with a projection, and one without, in a quarter of the width."""
    net = Net((14, 14, 24), 3)
    x = net.conv("c", net.conv("b", net.conv("a", "x", 16, 1), 16, 3, 2), 64, 1, clamp=NO_CLAMP)
    x = net.sum("add1", x, net.conv("projected", "x", 64, 1, 2, clamp=NO_CLAMP))
    y = net.conv("c2", net.conv("b2", net.conv("a2", x, 16, 1), 16, 3), 64, 1, clamp=NO_CLAMP)
    return net.graph(net.dense("fc", net.pool("mean", net.sum("add2", x, y), 7, 7, "average"), 10))


def inception_block() -> Graph:
    net = Net((13, 13, 20), 4)
    one = net.conv("one", "x", 12, 1)
    three = net.conv("three", net.conv("three before", "x", 8, 1), 16, 3)
    five = net.conv("five", net.conv("five before", "x", 4, 1), 8, 5)
    pooled = net.conv("pooled", net.pool("pool", "x", 3, 1, same=True), 8, 1)
    x = net.join("joined", one, three, five, pooled)
    return net.graph(net.conv("after", x, 10, 3, 2))


def joined() -> Graph:
    """Tensors joined again and again, in groups of odd sizes: the input, one twice, what others read; and layers that
    work on each channel of what was joined."""
    net = Net((9, 8, 5), 8)
    a = net.conv("a", "x", 3, 3)
    ab = net.join("ab", a, net.conv("b", "x", 7, 1))
    abc = net.join("abc", ab, net.conv("c", ab, 4, 3))
    most = net.pool("most", abc, 3, 2, same=False)
    mean = net.pool("mean", net.depthwise("each", abc, 3), 3, 2, "average")
    x = net.join("last", net.sum("sum", most, mean), net.conv("strided", "x", 6, 3, 2, same=False), most, most)
    return net.graph(net.dense("out", net.join("beside", x, net.pool("less", x, 1, 1)), 4))


def odd() -> Graph:
    """Odd sizes, a single channel, windows that leave places out."""
    net = Net((17, 11, 5), 5)
    x = net.depthwise("narrow", net.conv("wide", "x", 7, 3, 2), 3)
    x = net.pool("pool", net.conv("single", x, 1, 3), 2, 2)
    return net.graph(net.dense("out", net.conv("last", x, 3, 1), 4))


NETS: dict[str, Callable[[], Graph]] = {
    "lenet": lenet,
    "cifarnet": cifarnet,
    "resnet50_block": resnet50_block,
    "inception_block": inception_block,
    "joined": joined,
    "odd": odd,
}


def given(graph: Graph, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model's file that reads as the graph, and samples for it."""
    chance = np.random.default_rng(9)
    shape = graph.tensors[graph.inputs[0]].shape
    np.savez(folder / "samples.npz", x=chance.normal(0, 1, (8, *shape)).astype(np.float32))
    monkeypatch.setattr(pipeline, "load", lambda *_: graph)
    monkeypatch.setattr(pipeline, "refuse_too_large", lambda *_: None)
    return folder / "net.h5", folder / "samples.npz"
