"""Convolutions over one column of pixels cost no more than over one row, and fuse what the row's do."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.support.compiled import run_graph
from tests.support.graphs import single
from tests.support.quantized import quantized

TAPS, CHANNELS, LENGTH = 5, 32, 40
SETS = {
    "fpu": ("armv7em_dsp", frozenset({"arm_fpu"}), "float"),
    "avx2": ("avx2_fma", frozenset(), "float"),
    "mve": ("mve", frozenset(), "float"),
    "helium bytes": ("mve", frozenset(), "int8"),
    "rv32": ("rv32im", frozenset(), "int8"),
}


def network(kind: str, along: int, form: str) -> Graph:
    """The same sums over a column (0) or a row (1)."""

    def side(size: int, other: int) -> tuple[int, int]:
        return (size, other) if along == 0 else (other, size)

    depthwise = kind == "depthwise"
    attributes = (DepthwiseConv2D if depthwise else Conv2D)(
        padding=((2, 2), (0, 0)) if along == 0 else ((0, 0), (2, 2))
    )
    chance = np.random.default_rng(5)
    weights = chance.normal(size=(*side(TAPS, 1), CHANNELS, 1 if depthwise else CHANNELS)) / 8
    constants = {"kernel": weights, "bias": chance.normal(size=CHANNELS)}
    graph = single(attributes, [(*side(LENGTH, 1), CHANNELS)], constants)
    return graph if form == "float" else quantized(graph, form, seed=1)


def planned(graph: Graph, isa: str, features: frozenset[str]) -> Plan:
    return make_plan(graph, "m", Target(isas()[isa], features=features))


@pytest.mark.parametrize("kind", ["full", "depthwise"])
@pytest.mark.parametrize("name", SETS)
def test_a_column_costs_what_a_row_costs(name: str, kind: str) -> None:
    isa, features, form = SETS[name]
    column, row = (planned(network(kind, along, form), isa, features) for along in (0, 1))
    costs = [sum(step.choice.price.cycles for step in plan.steps) for plan in (column, row)]
    assert costs[0] <= 1.05 * costs[1], (costs, [step.choice.kernel.name for step in (*column.steps, *row.steps)])


@pytest.mark.parametrize("kind", ["full", "depthwise"])
def test_the_same_numbers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    x = np.random.default_rng(3).normal(size=(4, LENGTH, 1, CHANNELS)).astype(np.float32)
    made = []
    for along in (0, 1):
        graph = network(kind, along, "float")
        inputs = {graph.inputs[0]: x if along == 0 else x.swapaxes(1, 2)}
        (found,) = run_graph(graph, inputs, tmp_path_factory.mktemp("c")).values()
        (wanted,) = (interpret.run(graph, inputs)[name] for name in graph.outputs)
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
        made.append(found.reshape(-1))
    np.testing.assert_allclose(made[0], made[1], rtol=1e-4, atol=1e-4)
