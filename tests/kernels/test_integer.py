"""Every integer kernel against the integer reference: equal in every bit, over the whole range of its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.graph import Graph
from nnbuild.ops import interpret
from tests.kernels.cases import Maker, cases
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

RECURRENT = ("lstm", "gru", "simple_rnn")
MOVES = ("pool", "transpose", "slice", "repeat", "pad", "resize")
SAMPLES = 12


def groups() -> dict[str, dict[str, Maker]]:
    """The cases by the operation they begin with; one program serves a group."""
    found: dict[str, dict[str, Maker]] = {}
    for name, maker in cases():
        if not name.startswith(RECURRENT):
            found.setdefault(name.partition("-")[0], {})[name] = maker
    return found


GROUPS = groups()


def made(name: str, maker: Maker, dtype: str, seed: int) -> Graph:
    return quantized(maker(), dtype, seed=seed + len(name), same_scale=name.startswith(MOVES))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_equal_the_reference(group: str, dtype: str, tmp_path: Path) -> None:
    graphs = {f"{n} {s}": made(n, m, dtype, s) for n, m in GROUPS[group].items() for s in (0, 1000)}
    runs = [(graph, full_range(graph, SAMPLES, seed=1)) for graph in graphs.values()]
    found = run_many(runs, tmp_path)
    for name, (graph, inputs), outputs in zip(graphs, runs, found, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(outputs[output], wanted[output], err_msg=name)
