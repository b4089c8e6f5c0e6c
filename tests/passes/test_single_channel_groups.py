"""Convolutions by groups of one channel become depthwise with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.passes.single_channel_groups import single_channel_groups
from tests.support.graphs import single
from tests.support.quantized import full_range, quantized


def grouped(depth: int, out: int) -> Graph:
    chance = np.random.default_rng(3)
    constants = {"kernel": chance.normal(size=(3, 2, depth, out)), "bias": chance.normal(size=out)}
    attributes = Conv2D((2, 1), (1, 2), ((1, 1), (0, 1)), 6 // depth, clamp=Clamp(low=0.0), once=True)
    return single(attributes, [(7, 8, 6)], {role: values.astype(np.float32) for role, values in constants.items()})


@pytest.mark.parametrize("form", ["float", "int8", "int16"])
@pytest.mark.parametrize("out", [6, 18])
def test_one_channel_each(form: str, out: int) -> None:
    graph = grouped(1, out)
    graph = graph if form == "float" else quantized(graph, form, 1)
    made = verify(single_channel_groups(graph))
    assert [op.kind for op in made.ops] == ["depthwise_conv2d"]
    inputs = full_range(graph, 4, 1) if form != "float" else {"x0": np.random.default_rng(1).normal(size=(4, 7, 8, 6))}
    (output,) = graph.outputs
    was, now = (interpret.run(each, inputs, "float64")[output] for each in (graph, made))
    if form == "float":
        np.testing.assert_allclose(now, was, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(now, was)


def test_larger_groups_stay() -> None:
    assert [op.kind for op in single_channel_groups(grouped(2, 6)).ops] == ["conv2d"]
