"""Kernels are priced by what they take: steps of whole networks on the emulator, in instructions."""

from __future__ import annotations

import pytest

from benchmarks.nets import Net, layer_costs_on, planned, quantized
from benchmarks.trained import trained
from nnbuild.model.graph import Graph
from nnbuild.ops.matmul import MatMul

pytestmark = pytest.mark.emulator

FAR = 1.5
SMALL = 300
"""Instructions below which a tick of the board's counter, about 30 of them, decides."""


def query(form: str) -> Graph:
    """A single query's products, as in attention over a window."""
    net = Net("query")
    products = [
        net.add(MatMul(True), [net.input(2, 1, 32), net.input(2, 64, 32)]),
        net.add(MatMul(False), [net.input(2, 1, 64), net.input(2, 64, 32)]),
        net.add(MatMul(True), [net.input(1, 50), net.input(33, 50)]),
        net.add(MatMul(False), [net.input(1, 33), net.input(33, 50)]),
    ]
    return quantized(net.graph(*products), form)


def far(graph: Graph, board: str, least: int) -> list[str]:
    """The steps whose prices are far from what they take; at least so many are compared."""
    steps = planned(graph, board).steps
    costs = layer_costs_on(graph, board)
    pairs = [(step, step.choice.price.cycles, cost.cost) for step, cost in zip(steps, costs, strict=True)]
    assert sum(counted > SMALL for _, _, counted in pairs) >= least
    return [
        f"{step.layer}, {step.kernel_name}: {price:,.0f} priced, {counted:,} counted"
        for step, price, counted in pairs
        if counted > SMALL and not 1 / FAR <= price / counted <= FAR
    ]


@pytest.mark.turns(6)
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("net", ["tokens", "excited"])
def test_helium_is_priced_by_what_it_takes(net: str, form: str) -> None:
    assert not far(quantized(trained(net), form), "mps3-an547", least=5)


@pytest.mark.parametrize("board", ["mps2-an386", "rv32"])
def test_products_of_a_single_row_are_priced_by_what_they_take(board: str) -> None:
    assert not far(query("int8"), board, least=4)
