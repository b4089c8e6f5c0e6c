"""Every scalar integer kernel against the integer reference: equal in every bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.ops import interpret
from tests.kernels.cases import cases
from tests.support.compiled import run_graph
from tests.support.quantized import full_range, quantized

SUMS = ("conv2d", "depthwise", "dense")
MOVES = ("pool", "transpose", "slice", "repeat", "pad")
CASES = {name: maker for name, maker in cases() if name.startswith(SUMS + MOVES)}


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_kernel_equals_the_reference(name: str, dtype: str, tmp_path: Path) -> None:
    graph = quantized(CASES[name](), dtype, seed=len(name), same_scale=name.startswith(MOVES))
    inputs = full_range(graph, 5, seed=1)
    wanted = interpret.run(graph, inputs)
    found = run_graph(graph, inputs, tmp_path)
    for output in graph.outputs:
        np.testing.assert_array_equal(found[output], wanted[output])
