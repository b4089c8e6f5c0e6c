"""Products of two bytes, functions that first need a common scale (maxima, squared differences), and sums whose scales
are in the ratio of small integers: many are halves, which no linear function may round right. Every set has a fast
kernel for them, and gives the reference's bits for every pair of numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.parts.portable_binary import rule_of
from nnbuild.kernels.parts.residual import Residual
from nnbuild.model.graph import Graph, Quant
from nnbuild.model.verify import verify
from nnbuild.numeric.linear_sum import pairs
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.site import site_of
from nnbuild.plan.target import Target
from tests.kernels.test_variants import candidates
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import quantized

SUMS = [
    ("add", (1, 3, 4), Clamp()),
    ("add", (3, 1, 4), Clamp(low=0.0)),
    ("add", (2, 6, 8), Clamp()),
    ("subtract", (6, 2, 4), Clamp(low=0.0, high=1.5)),
    ("squared_difference", (1.37, 5.1, 11), Clamp()),
    ("squared_difference", (3, 3, 9), Clamp(high=5.0)),
    ("multiply", (3, 5.3, 7.1), Clamp(high=1.9)),
    ("maximum", (3, 5.3, 4.7), Clamp(low=0.5)),
    ("minimum", (2, 4, 2), Clamp()),
]
PAIRS = 256 * 256


def graph_of(function: str, units: tuple[float, float, float], clamp: Clamp) -> Graph:
    """Of tensors in these units of a 255th."""
    graph = quantized(single(Binary(function, clamp), [(PAIRS,), (PAIRS,)]), "int8", 0)
    names = (*graph.inputs, *graph.outputs)
    quants = {name: Quant((float(np.float32(unit / 255)),), -128) for name, unit in zip(names, units, strict=True)}
    changed = {name: replace(graph.tensors[name], quant=quant) for name, quant in quants.items()}
    return verify(replace(graph, tensors={**graph.tensors, **changed}))


@pytest.mark.slow
@pytest.mark.turns(2)
@pytest.mark.parametrize(("function", "units", "clamp"), SUMS)
def test_every_pair(function: str, units: tuple[float, float, float], clamp: Clamp, tmp_path: Path) -> None:
    graph = graph_of(function, units, clamp)
    assert not isinstance(rule_of(site_of(graph, graph.ops[0])), Residual)
    a, b = np.broadcast_arrays(*pairs())
    inputs = {name: x.reshape(1, -1).astype(np.int8) for name, x in zip(graph.inputs, (a, b), strict=True)}
    portable = Target(isas()["c99"], forced_kernels={graph.ops[0].name: "pairs"})
    found = {**dict(candidates(graph)), "pairs": portable}
    assert {"high_words", "high_words_many", "neon_rounded", "mve_rounded", "sse2_rounded"} <= set(found)
    results = run_many([(graph, inputs)] * len(found), tmp_path, targets=list(found.values()), flags=["-DNN_PORTABLE"])
    wanted = interpret.run(graph, inputs)[graph.outputs[0]]
    for name, result in zip(found, results, strict=True):
        np.testing.assert_array_equal(result[graph.outputs[0]], wanted, err_msg=name)
