"""Axes that 16 bits do not count, as of sound before any layer has shortened it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.target import Target
from tests.kernels.cases import normal
from tests.kernels.test_variants import candidates
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

LONG = 33_001
SIZES = {"a row": (1, LONG), "a column": (LONG, 1)}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)
def test_windows_of_a_small_program(shape: tuple[int, int], tmp_path: Path) -> None:
    """Their sizes are data of a shared routine."""
    window = tuple(min(3, size) for size in shape)
    graph = single(Conv2D(strides=(2, 2)), [(*shape, 1)], {"kernel": normal(*window, 1, 4), "bias": normal(4)})
    compare(quantized(graph, "int8", seed=1), ("compact", "compact_prefixed"), tmp_path)


def compare(graph: Graph, kernels: tuple[str, ...], folder: Path) -> None:
    found = [target for kernel, target in candidates(graph) if kernel in kernels]
    targets = [Target(), *found]
    assert len(targets) > len(kernels)
    inputs = full_range(graph, 1, seed=1)
    wanted = interpret.run(graph, inputs)
    results = run_many([(graph, inputs)] * len(targets), folder, targets=targets, flags=["-O1", "-DNN_PORTABLE"])
    for result, target in zip(results, targets, strict=True):
        for name in graph.outputs:
            np.testing.assert_array_equal(result[name], wanted[name], err_msg=str(target.forced_kernels))
