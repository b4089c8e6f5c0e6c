"""Numbers beyond 32 bits by halves of products, on Cortex-M0, which multiplies 32 bits only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.vendored import definitions
from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.matmul import MatMul
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.compiled import SANITIZE
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

SHORT = frozenset({"armv6m"})


def product(rows: int, depth: int, columns: int, turned: bool) -> Graph:
    right = (columns, depth) if turned else (depth, columns)
    return quantized(single(MatMul(turned=turned), [(rows, depth), right], {}), "int16", 3)


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_words_at_their_extremes(turned: bool, tmp_path: Path) -> None:
    graphs = [product(3, 5, 3, turned), product(1, 700, 2, turned)]
    runs = []
    for graph in graphs:
        given = full_range(graph, 3, 1)
        for at, end in enumerate((-32768, 32767)):
            for values in given.values():
                values[at] = end
        runs.append((graph, given))
    targets = [Target(isas()["armv6m"], forced_kernels={graph.ops[0].name: "halves"}) for graph in graphs]
    for (graph, given), got in zip(runs, run_many(runs, tmp_path, targets=targets, flags=SANITIZE), strict=True):
        (out,) = graph.outputs
        np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out])


def test_products_of_words_are_computed_so() -> None:
    graph = product(4, 8, 4, False)
    (step,) = make_plan(graph, "m", Target(isas()["armv6m"], wide_product=28)).steps
    assert step.kernel_name == "halves"
    assert all(kernel.needs == SHORT for kernel in variants("matmul") if kernel.name == "halves")


def test_vendored_functions_of_cortex_m0_take_no_long_products() -> None:
    names = ["requantize", "requantize64", "fine_tanh"]
    assert "(int64_t)" in definitions(names, "m")
    assert "(int64_t)" not in definitions(names, "m", SHORT)
    assert definitions(["scale_wide"], "m", SHORT) == definitions(["scale_wide"], "m")
