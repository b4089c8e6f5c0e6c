"""The largest values of rows by both kernels, against the reference: ties, rows in order, and every count."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nnbuild.kernels.registry import variants
from nnbuild.model.graph import WHOLE, Array, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.top_k import TopK
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.references import equal_the_reference

ROWS = 4
SIZES = {1: (1,), 2: (1, 2), 9: (1, 2, 3, 8, 9), 70: (1, 5, 32, 69, 70)}
KINDS = {"float32": None, "int8": Quant((0.1,), 3), "int16": Quant((0.1,), 0), "int32": WHOLE}


def largest(kind: str, size: int, count: int) -> Graph:
    x = Tensor("x", (ROWS, size), kind, KINDS[kind])
    y, places = Tensor("y", (ROWS, count), kind, KINDS[kind]), Tensor("places", (ROWS, count), "int32", WHOLE)
    op = Op("op", TopK(count), ("x",), ("y", "places"))
    return verify(Graph("net", {"x": x, "y": y, "places": places}, {}, (op,), ("x",), ("y", "places")))


def rows(kind: str, size: int) -> Array:
    """Rows with ties, all alike, ascending and descending."""
    some = np.random.default_rng(size).integers(-size // 3, size // 3 + 1, size)
    return np.stack([some, np.zeros(size), np.arange(size), np.arange(size)[::-1]])[None].astype(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernel.name for kernel in variants("top_k")])
def test_values_and_places(kernel: str, tmp_path: Path) -> None:
    cases = [(kind, size, count) for kind, (size, counts) in product(KINDS, SIZES.items()) for count in counts]
    cases = [case for case in cases if kernel == "scalar" or case[2] > 1]
    runs = [(largest(*case), {"x": rows(*case[:2])}) for case in cases]
    equal_the_reference(runs, [Target(forced_kernels={"op": kernel})] * len(runs), tmp_path)


@pytest.mark.parametrize(("size", "count", "kernel"), [(1000, 1, "scalar"), (1000, 100, "heap"), (10, 10, "heap")])
def test_few_are_searched_and_many_are_kept_in_a_heap(size: int, count: int, kernel: str) -> None:
    (step,) = make_plan(largest("float32", size, count), "net", Target()).steps
    assert step.kernel_name == kernel


def test_none_that_inputs_tell_where_to_store_where_a_bound_is_asked_for() -> None:
    (step,) = make_plan(largest("float32", 1000, 100), "net", Target(bounded=True)).steps
    assert step.kernel_name == "scalar"
