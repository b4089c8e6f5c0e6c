"""Sums by weight are chosen where multiplications are slow and distinct weights few, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.board.tables import find
from nnbuild.cycles.cost_model import pace_of
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import site_of
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.quantized import quantized


def layer(values: int) -> Graph:
    graph = quantized(single(Dense(), [(640,)], {"kernel": np.ones((640, 33))}), "int8", seed=values)
    kernel = graph.constants["kernel"]
    step = 256 // values
    data = (np.arange(kernel.data.size).reshape(kernel.data.shape) * 7919 % values - values // 2) * step
    return replace(graph, constants={**graph.constants, "kernel": replace(kernel, data=data.astype(np.int8))})


def chosen(values: int, cycles: int) -> str:
    graph, board = layer(values), replace(find("microbit"), multiplier=cycles)
    target = Target(isas()["armv6m"], board.architecture, pace=pace_of(board))
    return choose(site_of(graph, graph.ops[0]), target).kernel.name


@pytest.mark.parametrize("values", [2, 3, 7, 16])
def test_inputs_are_summed_by_weight_where_products_take_32_cycles(values: int) -> None:
    assert chosen(values, 32) == "buckets"


def test_elsewhere_products_are_computed() -> None:
    assert chosen(16, 1) != "buckets"
    assert chosen(64, 32) != "buckets"
