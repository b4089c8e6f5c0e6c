"""Every float kernel, compiled with warnings as errors and sanitizers, against the float64 reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.kernels.cases import cases
from tests.support.compiled import SANITIZE
from tests.support.many import run_many

pytestmark = pytest.mark.slow

CASES = dict(cases())
SHARES = 16


def samples(graph: Graph, positive: bool, count: int = 3) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(1)
    values = {name: chance.normal(scale=2.0, size=(count, *graph.tensors[name].shape)) for name in graph.inputs}
    return {name: (np.abs(v) + 0.2 if positive else v).astype(np.float32) for name, v in values.items()}


@pytest.mark.turns(3)
@pytest.mark.parametrize("share", range(SHARES))
def test_kernels_agree_with_the_reference(share: int, tmp_path: Path) -> None:
    """One compilation for all: starting the compiler for each takes longer than all the rest."""
    names = list(CASES)[share::SHARES]
    graphs = [CASES[name]() for name in names]
    runs = [(graph, samples(graph, name.endswith("positive"))) for name, graph in zip(names, graphs, strict=True)]
    results = run_many(runs, tmp_path, flags=SANITIZE)
    for name, (graph, inputs), found in zip(names, runs, results, strict=True):
        wanted = interpret.run(graph, inputs, "float64")
        for output in graph.outputs:
            np.testing.assert_allclose(found[output], wanted[output], rtol=1e-5, atol=1e-5, err_msg=name)
