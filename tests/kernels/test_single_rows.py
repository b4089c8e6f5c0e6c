"""The kernels of a stream's single rows on small cores, at the extremes of bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.base import Attributes
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.shift import Shift
from nnbuild.plan.target import Target
from tests.kernels.cases import normal, single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized, with_weights

PADDING = ((0, 0), (0, 0))
PLACES = {"strides": (1, 1), "padding": PADDING, "dilation": (1, 1)}
LAYERS: dict[str, tuple[str, Attributes, tuple[int, ...], tuple[int, ...]]] = {
    "dense": ("two_products", Dense(), (128,), (128, 13)),
    "dense of an odd number": ("two_products", Dense(), (7,), (7, 3)),
    "dense of one": ("two_products", Dense(), (1,), (1, 4)),
    "convolution": ("two_products", Conv2D(**PLACES), (3, 1, 10), (3, 1, 10, 9)),
    "pointwise": ("two_products", Conv2D(**PLACES), (1, 1, 64), (1, 1, 64, 32)),
    "depthwise": ("alone_short", DepthwiseConv2D(**PLACES), (15, 1, 33), (15, 1, 33, 1)),
    "depthwise image": ("alone_short", DepthwiseConv2D(**PLACES), (3, 3, 5), (3, 3, 5, 1)),
}
WEIGHTS = {"drawn": None, "all least": -128, "all largest": 127}


def drawn(attributes: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...], weights: int | None) -> Graph:
    outputs = kernel[-1] if kernel[-1] > 1 else kernel[-2]
    if isinstance(attributes, DepthwiseConv2D):
        outputs = kernel[2]
    graph = quantized(single(attributes, [shape], {"kernel": normal(*kernel), "bias": normal(outputs)}), "int8", 3)
    return graph if weights is None else with_weights(graph, weights)


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    given = full_range(graph, 6, seed=1)
    ends = {name: np.stack([np.full_like(x[0], end) for end in (-128, 127, 0)]) for name, x in given.items()}
    return {name: np.concatenate([x, ends[name]]) for name, x in given.items()}


@pytest.mark.turns(2)
@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"], ["-O2"]])
def test_layers_of_one_row(flags: list[str], tmp_path: Path) -> None:
    runs, targets = [], []
    for kernel, attributes, shape, taps in LAYERS.values():
        for weights in WEIGHTS.values():
            graph = drawn(attributes, shape, taps, weights)
            runs.append((graph, inputs_of(graph)))
            targets.append(Target(isas()["armv6m"], forced_kernels={graph.ops[0].name: kernel}))
    for (graph, given), got in zip(runs, run_many(runs, tmp_path, targets=targets, flags=flags), strict=True):
        (out,) = graph.outputs
        np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out], err_msg=graph.ops[0].kind)


def test_sliding_rows(tmp_path: Path) -> None:
    runs, targets = [], []
    for dtype in ("int8", "int16"):
        for shape, new in (((5, 3, 4), (2, 3, 4)), ((4, 1, 16), (4, 1, 16)), ((9, 7), (1, 7))):
            graph = quantized(single(Shift(0), [shape, new]), dtype, 3, same_scale=True)
            runs.append((graph, full_range(graph, 5, seed=1)))
            targets.append(Target(isas()["armv6m"], forced_kernels={graph.ops[0].name: "by_fours_short"}))
    for (graph, given), got in zip(runs, run_many(runs, tmp_path, targets=targets), strict=True):
        (out,) = graph.outputs
        np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out])
