"""Networks at random as they are published: of even sizes, 3 x 3 and 1 x 1 convolutions, blocks and residual sums. Fast
kernels wait for such shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.random_graphs import CLAMPS, FLAT, Draft, activation, biases, dense, finished, pool, tried, weights
from nnbuild.model.graph import Graph, Tensor
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape

SIDES = (4, 6, 8, 8, 10, 12, 16, 20, 24)
CHANNELS = (4, 8, 8, 16, 16, 24, 32, 48, 64)
MOST_MACS = 1_500_000
"""Of one layer."""


def _padding(kernel: int, stride: int, same: bool) -> tuple[int, int]:
    """As TensorFlow pads an even side, or nothing."""
    total = kernel - stride if same else 0
    return (max(total, 0) // 2, max(total, 0) - max(total, 0) // 2)


def _convolution(d: Draft, x: str, kernel: int, filters: int, stride: int = 1) -> str:
    rows, columns, channels = d.shape(x)
    if rows * columns * kernel**2 * channels * filters > MOST_MACS * stride**2:
        filters = 4
    around = _padding(kernel, stride, d.chance.random() < 0.8)
    how = Conv2D((stride, stride), (1, 1), (around, around), 1, clamp=CLAMPS[d.pick(*range(len(CLAMPS)))])
    taps = weights(d.chance, (kernel, kernel, channels, filters), filters)
    return d.add(how, [x], kernel=taps, **biases(d.chance, filters))


def _depthwise(d: Draft, x: str, kernel: tuple[int, int], stride: int = 1, same: bool = True) -> str:
    channels = d.shape(x)[2]
    around = tuple(_padding(k, stride, same) for k in kernel)
    how = DepthwiseConv2D((stride, stride), (1, 1), around, clamp=CLAMPS[d.pick(0, 2, 3)])  # type: ignore[arg-type]
    return d.add(how, [x], kernel=weights(d.chance, (*kernel, channels, 1), channels), **biases(d.chance, channels))


def _plain(d: Draft, x: str) -> str:
    return _convolution(d, x, d.pick(3, 3, 3, 5), d.pick(*CHANNELS), d.pick(1, 1, 1, 2))


def _pointwise(d: Draft, x: str) -> str:
    return _convolution(d, x, 1, d.pick(*CHANNELS))


def _separable(d: Draft, x: str) -> str:
    return _pointwise(d, _depthwise(d, x, (3, 3), d.pick(1, 1, 2)))


def _residual(d: Draft, x: str) -> str:
    """Two convolutions and the sum with what came in; its parts in either order."""
    channels = d.shape(x)[2]
    side = _convolution(d, _convolution(d, x, d.pick(1, 3), d.pick(*CHANNELS)), d.pick(1, 3), channels)
    if d.shape(side) != d.shape(x):
        return side
    both = [x, side] if d.chance.random() < 0.5 else [side, x]
    return d.add(Binary("add", Clamp(0.0, None) if d.chance.random() < 0.5 else Clamp(None, None)), both)


def _halved(d: Draft, x: str) -> str:
    return d.add(Pool2D(("max", "average")[d.pick(0, 1)], (2, 2), (2, 2), ((0, 0), (0, 0))), [x])


def _normalized(d: Draft, x: str) -> str:
    given = {role: d.chance.normal(size=d.shape(x)[-1]).astype(np.float32) for role in ("scale", "shift")}
    return d.add(LayerNorm(1, 1e-3, bool(d.chance.integers(2))), [x], **given)


def _one_place(d: Draft, x: str) -> str:
    """What ends an image: a mean, a window as large as it, or all of it."""
    rows, columns, _ = d.shape(x)
    kind = d.pick(0, 1, 2, 2)
    if kind == 0:
        return d.add(Reduce("mean", 0, 2, False), [x])
    last = _depthwise(d, x, (rows, columns), same=False) if kind == 1 and rows * columns <= 256 else x
    return d.add(Reshape((int(np.prod(d.shape(last))),)), [last])


BLOCKS: tuple[Callable[[Draft, str], str], ...] = (
    *(_plain, _plain, _plain, _pointwise, _separable, _separable, _residual, _residual, _residual),
    *(_halved, activation, _normalized, pool),
)


def even_graph(seed: int) -> Graph:
    """A first layer, one to five blocks, and often a classifier."""
    d = Draft(np.random.default_rng([seed, 19]))
    side = d.pick(*SIDES)
    d.tensors["x"] = Tensor("x", (side, d.pick(side, side, *SIDES), d.pick(1, 3, *CHANNELS)))
    x = tried(d, "x", _plain) if d.chance.random() < 0.6 else "x"
    for _ in range(int(d.chance.integers(1, 6))):
        x = tried(d, x, BLOCKS[int(d.chance.integers(len(BLOCKS)))])
    if d.chance.random() < 0.6:
        x = tried(d, x, _one_place)
        for _ in range(int(d.chance.integers(0, 3)) if len(d.shape(x)) == 1 else 0):
            x = tried(d, x, (lambda draft, given: dense(draft, given, CHANNELS), *FLAT)[d.pick(0, 0, 1, 2, 3)])
    return finished(d, x)
