"""PReLU of bytes by lines: the reference's bits for every input, for slopes and scales of every size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.prelu import PReLU
from nnbuild.plan.target import Target
from tests.support.compiled import SANITIZE
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import quantized

SLOPES = ((1, 1, 70), (256, 1, 1), (1, 1, 1), (256, 1, 70))
"""More channels than have tables, rows, one, and one for every element."""


def graph_of(seed: int, slopes: tuple[int, ...], zero: int | None) -> Graph:
    numbers = np.zeros(slopes, np.float32)
    powers = (-6.0 - seed % 3, -5.0 + seed % 4)
    graph = quantized(single(PReLU(), [(256, 1, 70)], {"slope": numbers}), "int8", seed, powers=powers)
    (name,) = graph.inputs
    own = graph.tensors[name]
    if zero is None or own.quant is None:
        return graph
    quant = replace(own.quant, zero_point=zero)
    return verify(replace(graph, tensors={**graph.tensors, name: replace(own, quant=quant)}))


@pytest.mark.slow
def test_lines_equal_the_reference(tmp_path: Path) -> None:
    cases = [(slopes, zero) for slopes in SLOPES for zero in (None, None, -128, 0, 127)]
    graphs = [graph_of(seed, slopes, zero) for seed, (slopes, zero) in enumerate(cases)]
    every = np.repeat(np.arange(-128, 128), 70).reshape(1, 256, 1, 70).astype(np.int8)
    runs = [(graph, {graph.inputs[0]: every}) for graph in graphs]
    targets = [Target(isas()["c99"], forced_kernels={graph.ops[0].name: "lines"}) for graph in graphs]
    results = run_many(runs, tmp_path, targets=targets, flags=[*SANITIZE])
    for (graph, inputs), result in zip(runs, results, strict=True):
        (output,) = graph.outputs
        np.testing.assert_array_equal(result[output], interpret.run(graph, inputs)[output])
