"""Kernels are priced by what they take: steps of whole networks on the emulator, in instructions."""

from __future__ import annotations

import pytest

from benchmarks.nets import layer_costs_on, planned, quantized
from benchmarks.trained import trained

pytestmark = pytest.mark.emulator

FAR = 1.5
SMALL = 300
"""Instructions below which a tick of the board's counter, about 30 of them, decides."""


@pytest.mark.turns(2)
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("net", ["tokens", "excited"])
def test_helium_is_priced_by_what_it_takes(net: str, form: str) -> None:
    graph = quantized(trained(net), form)
    steps = planned(graph, "mps3-an547").steps
    costs = layer_costs_on(graph, "mps3-an547")
    pairs = [(step, step.choice.price.cycles, cost.cost) for step, cost in zip(steps, costs, strict=True)]
    far = [
        f"{step.layer}, {step.kernel_name}: {price:,.0f} priced, {counted:,} counted"
        for step, price, counted in pairs
        if counted > SMALL and not 1 / FAR <= price / counted <= FAR
    ]
    assert sum(counted > SMALL for _, _, counted in pairs) >= 5
    assert not far, "\n".join(far)
