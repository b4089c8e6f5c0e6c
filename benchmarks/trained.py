"""Networks as training with BatchNormalization leaves them: scales that spread, dead and near-dead channels.

A dead channel's weights are 0, a near-dead one's far below its neighbours', and the bias of neither is small. `spared`
makes the same network without such channels, to be compared with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.nets import Net
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.windows import same_padding

RELU, RELU6 = Clamp(0.0, None), Clamp(0.0, 6.0)
AFFECTED = 3
"""Every so many layers have dead and near-dead channels."""


class Trained(Net):
    """Layers of trained networks; `spared` leaves all channels alive."""

    def __init__(self, name: str, spared: bool = False) -> None:
        super().__init__(name)
        self.spared = spared
        self._layers = 0

    def weights(self, *shape: int, channels: int) -> tuple[Array, Array]:
        """A kernel whose last numbers are its channels, and the bias."""
        taps = int(np.prod(shape)) // channels
        kernel = self.chance.normal(size=(taps, channels)) * np.sqrt(2 / taps) * self.chance.lognormal(0, 0.6, channels)
        bias = self.chance.normal(scale=0.5, size=channels)
        self._layers += 1
        if self._layers % AFFECTED == 0 and not self.spared:
            faint = 2.0 ** -self.chance.uniform(6, 22, channels)
            kernel = kernel * np.where(np.arange(channels) % 5 == 1, faint, 1.0) * (np.arange(channels) % 7 != 3)
        return kernel.reshape(shape), bias

    def conv(
        self,
        x: str,
        filters: int,
        window: tuple[int, int] = (3, 3),
        stride: int = 1,
        clamp: Clamp = RELU,
        groups: int = 1,
    ) -> str:
        height, width, depth = self.shape(x)
        kernel, bias = self.weights(*window, depth, filters, channels=filters)
        padding = (same_padding(height, window[0], stride, 1), same_padding(width, window[1], stride, 1))
        attributes = Conv2D((stride, stride), padding=padding, clamp=clamp)
        return self.add(attributes, [x], {"kernel": kernel, "bias": bias})

    def depthwise(self, x: str, window: int = 3, stride: int = 1, clamp: Clamp = RELU6) -> str:
        height, width, depth = self.shape(x)
        kernel, bias = self.weights(window, window, depth, 1, channels=depth)
        padding = (same_padding(height, window, stride, 1), same_padding(width, window, stride, 1))
        attributes = DepthwiseConv2D((stride, stride), padding=padding, clamp=clamp)
        return self.add(attributes, [x], {"kernel": kernel, "bias": bias})

    def dense(self, x: str, units: int, clamp: Clamp = NO_CLAMP) -> str:
        kernel, bias = self.weights(self.shape(x)[-1], units, channels=units)
        return self.add(Dense(clamp), [x], {"kernel": kernel, "bias": bias})

    def affine(self, x: str, clamp: Clamp = RELU) -> str:
        depth = self.shape(x)[-1]
        scale = self.chance.lognormal(0, 0.6, depth)
        return self.add(
            Affine(len(self.shape(x)) - 1, clamp), [x], {"scale": scale, "shift": self.chance.normal(size=depth)}
        )

    def swish(self, x: str) -> str:
        return self.add(Activation("swish"), [x])

    def gate(self, x: str, inner: int) -> str:
        """Squeeze and excite."""
        depth = self.shape(x)[-1]
        squeezed = self.add(Reduce("mean", 0, 2, keep=True), [x])
        gates = self.conv(self.conv(squeezed, inner, (1, 1)), depth, (1, 1), clamp=NO_CLAMP)
        return self.add(Binary("multiply"), [x, self.add(Activation("sigmoid"), [gates])])

    def classes(self, x: str, units: int) -> Graph:
        flat = self.add(Reduce("mean", 0, 2), [x]) if len(self.shape(x)) == 3 else x
        return self.graph(self.add(Softmax(), [self.dense(flat, units)]))


def separable(net: Trained) -> Graph:
    """Depthwise-separable, ReLU6, uneven sizes and channels."""
    x = net.conv(net.input(33, 29, 3), 12, stride=2, clamp=RELU6)
    for filters, stride in ((21, 1), (24, 2), (24, 1), (43, 2), (48, 1), (64, 1)):
        x = net.conv(net.depthwise(x, stride=stride), filters, (1, 1), clamp=RELU6)
    return net.classes(x, 10)


def residual(net: Trained) -> Graph:
    x = net.conv(net.input(24, 24, 3), 16)
    for filters, stride in ((16, 1), (32, 2), (40, 2)):
        beside = x if stride == 1 else net.conv(x, filters, (1, 1), stride, NO_CLAMP)
        inner = net.conv(net.conv(x, filters, stride=stride), filters, clamp=NO_CLAMP)
        x = net.add(Binary("add", RELU), [inner, beside])
    return net.classes(x, 10)


def excited(net: Trained) -> Graph:
    """Swish and squeeze-excite, inverted residuals."""
    x = net.swish(net.conv(net.input(32, 32, 3), 16, stride=2, clamp=NO_CLAMP))
    for filters, stride in ((16, 1), (24, 2), (24, 1)):
        wide = net.swish(net.conv(x, 3 * net.shape(x)[-1], (1, 1), clamp=NO_CLAMP))
        wide = net.gate(net.swish(net.depthwise(wide, 5, stride, NO_CLAMP)), 8)
        out = net.conv(wide, filters, (1, 1), clamp=NO_CLAMP)
        x = net.add(Binary("add"), [out, x]) if net.shape(out) == net.shape(x) else out
    return net.classes(net.swish(x), 7)


def one_dimensional(net: Trained) -> Graph:
    """Convolutions of one axis, as over sensors, with a pool of averages."""
    x = net.conv(net.input(1, 128, 6), 24, (1, 5))
    x = net.add(Pool2D("max", (1, 2), (1, 2)), [x])
    x = net.conv(net.conv(x, 32, (1, 5)), 37, (1, 3))
    x = net.add(Pool2D("average", (1, 4), (1, 4)), [x])
    return net.classes(net.conv(x, 48, (1, 3)), 6)


def wide_dense(net: Trained) -> Graph:
    x = net.input(490)
    for units in (256, 131, 8, 256):
        x = net.dense(x, units, RELU)
    return net.graph(net.dense(x, 490))


def upsampling(net: Trained) -> Graph:
    """An encoder and a decoder that joins what lies beside it."""
    first = net.conv(net.input(24, 24, 3), 12)
    second = net.conv(net.add(Pool2D(), [first]), 24)
    third = net.conv(net.add(Pool2D(), [second]), 32)
    up = net.add(Repeat((2, 1, 1)), [third])
    joined = net.add(Concatenate(2), [net.add(ResizeBilinear((12, 12)), [up]), second])
    return net.graph(net.conv(net.conv(joined, 16), 2, (1, 1), clamp=NO_CLAMP))


def two_inputs(net: Trained) -> Graph:
    image = net.conv(net.conv(net.input(20, 20, 1), 8), 20, stride=2)
    x = net.affine(net.add(Concatenate(2), [image, net.conv(net.input(20, 20, 2), 12, stride=2)]))
    slope = net.chance.uniform(0.05, 0.4, size=(1, 1, net.shape(x)[-1]))
    x = net.add(PReLU(), [net.conv(x, 32, (1, 1), clamp=NO_CLAMP)], {"slope": slope})
    return net.classes(x, 4)


def tokens(net: Trained) -> Graph:
    """Layer norms and wide layers over tokens."""
    x = net.input(24, 48)
    for _ in range(2):
        ones = {"scale": net.chance.lognormal(0, 0.2, 48), "shift": net.chance.normal(scale=0.1, size=48)}
        wide = net.dense(net.add(LayerNorm(1, 1e-3), [x], ones), 96, RELU)
        x = net.add(Binary("add"), [x, net.dense(wide, 48)])
    return net.classes(net.add(Reshape((48 * 24,)), [x]), 5)


NETS: dict[str, Callable[[Trained], Graph]] = {
    make.__name__: make
    for make in (separable, residual, excited, one_dimensional, wide_dense, upsampling, two_inputs, tokens)
}


def trained(name: str, spared: bool = False) -> Graph:
    return NETS[name](Trained(name, spared))
