"""Meanings of vector operations stay bit-exact where the compiler vectorizes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.ops import interpret
from nnbuild.ops.reduce import Reduce
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_integer_recurrent import extreme, quantized
from tests.support.batch import Entry, run_batch
from tests.support.graphs import single


@pytest.mark.parametrize("name", ["sse2", "avx512", "neon"])
def test_sums_of_lanes_at_the_highest_level(name: str, tmp_path: Path) -> None:
    """gcc 12 lost such sums at -O3."""
    graph = quantized(single(Reduce("mean", 0, 1, True), [(16, 8)]), "int8")
    plan = make_plan(graph, "net", Target(isas()[name], forced_kernels={"op": f"{name}_integers"}))
    inputs = extreme(graph, 6)
    (found,) = run_batch([Entry(plan, inputs)], tmp_path, ("gcc", "-O3", "-DNN_PORTABLE"))
    wanted = interpret.run(graph, inputs)
    for output in graph.outputs:
        np.testing.assert_array_equal(found[output], wanted[output])
