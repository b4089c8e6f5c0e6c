"""Sums of convolutions side by side, as networks have them that are re-parameterized after training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Clamp, Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.passes.merge_branches import merge_branches

CHANNELS = 6
RELU = Clamp(0.0)


class Branches(Net):
    """Adds branches of an image of 9x7 and 6 channels."""

    def __init__(self) -> None:
        super().__init__("branches")
        self.x = self.input(9, 7, CHANNELS)

    def conv(self, window: Pair, stride: int = 1, dilation: int = 1, groups: int = 1, size: float = 0.2) -> str:
        kernel = self.chance.normal(0, size, size=(*window, CHANNELS // groups, CHANNELS))
        around = tuple(((n - 1) * dilation // 2, (n - 1) * dilation // 2) for n in window)
        attributes = Conv2D((stride, stride), (dilation, dilation), around, groups)
        return self.add(attributes, [self.x], {"kernel": kernel, "bias": self.chance.normal(size=CHANNELS)})

    def depthwise(self, window: Pair, stride: int = 1, size: float = 0.3) -> str:
        kernel = self.chance.normal(0, size, size=(*window, CHANNELS, 1))
        around = tuple((n // 2, n // 2) for n in window)
        return self.add(DepthwiseConv2D((stride, stride), padding=around), [self.x], {"kernel": kernel})

    def norm(self) -> str:
        values = {"scale": self.chance.normal(1, 0.3, size=CHANNELS), "shift": self.chance.normal(size=CHANNELS)}
        return self.add(Affine(2), [self.x], values)

    def sum(self, *terms: str, clamp: Clamp = RELU) -> str:
        first, *rest = terms
        for place, term in enumerate(rest):
            first = self.add(Binary("add", clamp if place == len(rest) - 1 else Clamp()), [first, term])
        return first


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


MERGED: dict[str, tuple[str, Callable[[Branches], str]]] = {
    "RepVGG": ("conv2d", lambda n: n.sum(n.conv((3, 3)), n.conv((1, 1)), n.norm())),
    "in another order": ("conv2d", lambda n: n.sum(n.norm(), n.conv((1, 1)), n.conv((3, 3)))),
    "stride 2": ("conv2d", lambda n: n.sum(n.conv((1, 1), 2), n.conv((3, 3), 2))),
    "groups": ("conv2d", lambda n: n.sum(n.conv((3, 3), groups=3), n.conv((1, 1), groups=3), n.x)),
    "asymmetric": ("conv2d", lambda n: n.sum(n.conv((3, 1)), n.conv((3, 3)), n.conv((1, 3)))),
    "dilated": ("conv2d", lambda n: n.sum(n.conv((5, 5)), n.conv((3, 3), dilation=2))),
    "residual": ("conv2d", lambda n: n.sum(n.x, n.conv((3, 3)))),
    "MobileOne": ("depthwise_conv2d", lambda n: n.sum(n.depthwise((3, 3)), n.depthwise((1, 1)), n.norm())),
    "large kernels": ("depthwise_conv2d", lambda n: n.sum(n.depthwise((5, 5)), n.depthwise((3, 3)))),
    "positions": ("depthwise_conv2d", lambda n: n.sum(n.x, n.depthwise((3, 3)), clamp=Clamp())),
    "norms": ("affine", lambda n: n.sum(n.norm(), n.x, n.norm())),
    "a sum of sums": ("conv2d", lambda n: n.sum(n.sum(n.x, n.norm(), clamp=Clamp()), n.conv((3, 3)))),
}


@pytest.mark.parametrize("case", MERGED)
def test_branches_become_one_operation(case: str) -> None:
    kind, make = MERGED[case]
    net = Branches()
    graph = net.graph(make(net))
    merged = passes.run(graph)
    assert kinds(merged) == [kind]
    x = {net.x: net.chance.normal(size=(3, 9, 7, CHANNELS)).astype(np.float32)}
    (wanted,), (found,) = (list(interpret.run(each, x).values())[-1:] for each in (graph, merged))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_what_is_added_besides_stays() -> None:
    net = Branches()
    pooled = net.add(Activation("sigmoid"), [net.x])
    graph = net.graph(net.sum(net.conv((3, 3)), pooled, net.conv((1, 1)), net.norm()))
    merged = passes.run(graph)
    assert sorted(kinds(merged)) == ["activation", "binary", "conv2d"]
    x = {net.x: net.chance.normal(size=(2, 9, 7, CHANNELS)).astype(np.float32)}
    (wanted,), (found,) = (list(interpret.run(each, x).values())[-1:] for each in (graph, merged))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


APART: dict[str, Callable[[Branches], tuple[str, ...]]] = {
    "windows that do not hold each other": lambda n: (n.sum(n.conv((3, 1)), n.conv((1, 3))),),
    "taps between": lambda n: (n.sum(n.conv((3, 3), dilation=2), n.conv((3, 3))),),
    "another number of groups": lambda n: (n.sum(n.conv((3, 3), groups=2), n.conv((1, 1), groups=3)),),
    "a convolution and a depthwise one": lambda n: (n.sum(n.conv((3, 3)), n.depthwise((1, 1))),),
    "read elsewhere, too": lambda n: (n.sum(one := n.conv((3, 3)), n.conv((1, 1))), n.add(Activation("tanh"), [one])),
    "an output": lambda n: (one := n.conv((3, 3)), n.sum(one, n.conv((1, 1)))),
}


@pytest.mark.parametrize("case", APART)
def test_branches_stay_apart(case: str) -> None:
    net = Branches()
    graph = net.graph(*APART[case](net))
    assert kinds(merge_branches(graph)) == kinds(graph)


def test_weights_in_bytes_are_not_made_much_coarser() -> None:
    """A residual beside small weights of many inputs would leave them few steps. Beside a depthwise convolution that
    counts as little as the rounding of the outputs."""
    net = Branches()
    dense = net.graph(net.sum(net.x, net.conv((3, 3), size=0.004)))
    assert kinds(merge_branches(dense)) == ["conv2d"]
    assert kinds(merge_branches(dense, "int8")) == ["conv2d", "binary"]
    net = Branches()
    depthwise = net.graph(net.sum(net.x, net.depthwise((3, 3), size=0.05)))
    assert kinds(merge_branches(depthwise, "int8")) == ["depthwise_conv2d"]
    assert kinds(merge_branches(depthwise, "int16")) == ["depthwise_conv2d", "binary"]


def test_a_long_sum_is_searched_in_parts() -> None:
    """As an unrolled loop leaves it."""
    net = Branches()
    terms = [net.add(Activation("sigmoid"), [net.x]) for _ in range(1500)]
    graph = net.graph(net.sum(*terms, net.conv((3, 3)), net.conv((1, 1))))
    assert kinds(merge_branches(graph)).count("conv2d") == 1
