"""Every float kernel, compiled with warnings as errors and sanitizers, against the float64 reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.kernels.cases import Maker, cases
from tests.support.compiled import run_graph

pytestmark = pytest.mark.slow

CASES = dict(cases())


def samples(graph: Graph, positive: bool, count: int = 3) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(1)
    values = {name: chance.normal(scale=2.0, size=(count, *graph.tensors[name].shape)) for name in graph.inputs}
    return {name: (np.abs(v) + 0.2 if positive else v).astype(np.float32) for name, v in values.items()}


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    maker: Maker = CASES[name]
    graph = maker()
    inputs = samples(graph, name.endswith("positive"))
    wanted = interpret.run(graph, inputs, "float64")
    found = run_graph(graph, inputs, tmp_path)
    for output in graph.outputs:
        np.testing.assert_allclose(found[output], wanted[output], rtol=1e-5, atol=1e-5)
