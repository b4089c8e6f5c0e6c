"""Scales for which no integers do what a float64 product does are moved to the next ones."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op, Quant, Tensor
from nnbuild.ops.dense import Dense, unscalable
from nnbuild.ops.site import site_of
from nnbuild.quantize.exact_scales import with_exact_scales

REFUSED = 5.2810952183790505e-05
"""With the scales below products of 10,376,660 and its odd multiples lie at a half, and are rounded to either side."""


def layer(scales: tuple[float, ...]) -> Graph:
    tensors = {
        "x": Tensor("x", (78,), "int16", Quant((0.00012207403779029846,))),
        "y": Tensor("y", (2,), "int16", Quant((2.1369343812693842e-05,))),
    }
    kernel = np.full((78, 2), 60, np.int8)
    quant = Quant(scales, 0, 1 if len(scales) > 1 else None)
    constants = {"w": Constant("w", kernel, quant)}
    return Graph("m", tensors, constants, (Op("op", Dense(), ("x",), ("y",), {"kernel": "w"}),), ("x",), ("y",))


def test_a_scale_of_one_output_is_moved() -> None:
    graph = layer((3e-5, REFUSED))
    assert unscalable(site_of(graph, graph.ops[0])) == [1]
    found = with_exact_scales(graph)
    first, second = found.constants["w"].quant.scales  # type: ignore[union-attr]
    assert first == 3e-5
    assert 0 < abs(second / REFUSED - 1) < 1e-6
    assert unscalable(site_of(found, found.ops[0])) == []


def test_the_scale_of_all_outputs_is_moved() -> None:
    graph = layer((REFUSED,))
    found = with_exact_scales(graph)
    assert unscalable(site_of(found, found.ops[0])) == []


def test_others_stay_as_they_are() -> None:
    graph = layer((3e-5, 4e-5))
    assert with_exact_scales(graph) is graph
