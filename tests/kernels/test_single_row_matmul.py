"""Products of a single row of bytes and a matrix: every kernel of every set equals the reference, also where all
numbers are extreme, and sets with vectors choose one that does not pack the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.matmul import MatMul
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_variants import candidates, compare, emulated, on_targets
from tests.support.graphs import single
from tests.support.quantized import full_range, quantized
from tests.support.references import equal_the_reference

SIZES = ((1, 1, 1), (2, 16, 10), (1, 7, 3), (3, 33, 64), (2, 31, 131), (1, 100, 128), (1, 6, 300), (1, 9, 8))
"""(matrices, depth, columns)"""
POWERS = ((-13.0, -11.0), (-1.0, 2.0), (-27.0, -25.0))
"""Of scales: outputs spread over their range, saturate, or are all equal."""


def product_of(
    count: int, depth: int, columns: int, turned: bool, seed: int, powers: tuple[float, float] = POWERS[0]
) -> Graph:
    right = (count, columns, depth) if turned else (count, depth, columns)
    attributes = MatMul(turned, once=seed % 4 > 1)
    return quantized(single(attributes, [(count, 1, depth), right]), "int8", seed, powers=powers)


def runs() -> Iterator[tuple[Graph, dict[str, Array]]]:
    chance = np.random.default_rng(1)
    made = [*((sizes, POWERS[0]) for sizes in SIZES), *((SIZES[1], powers) for powers in POWERS[1:])]
    for seed, (sizes, powers) in enumerate(made):
        for turned in (False, True):
            graph = product_of(*sizes, turned, 2 * seed + turned, powers)
            drawn = full_range(graph, 2, seed=1)
            ends = {name: np.where(chance.random(x.shape) < 0.5, -128, 127) for name, x in drawn.items()}
            lowest = {name: np.full_like(x[:1], -128) for name, x in drawn.items()}
            yield (
                graph,
                {name: np.concatenate([x, ends[name].astype(np.int8), lowest[name]]) for name, x in drawn.items()},
            )


@pytest.mark.turns(4)
@pytest.mark.slow
@pytest.mark.parametrize("here", [False, True], ids=["portable", "native"])
def test_products_equal_the_reference(here: bool, tmp_path: Path) -> None:
    cases, targets = on_targets(runs(), ("",), here)
    found = {(target.isa.name, name) for target in targets for name in target.forced_kernels.values()}
    assert ("avx2_fma", "avx2_fma_integers") in found
    assert here or {("neon", "neon_integers"), ("zve32x", "zve32x_integers"), ("armv7em_dsp", "single_row")} <= found
    equal_the_reference(cases, targets, tmp_path, here)


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [isa.name for isa in isas().values() if emulated(isa)])
def test_products_equal_the_reference_in_an_emulator(name: str, tmp_path: Path) -> None:
    graphs = [graph for graph, _ in runs()]
    mine = [(name, kernel, graph, target) for graph in graphs for kernel, target in candidates(graph, name)]
    compare(mine, "int8", tmp_path / "programs", (), emulated(isas()[name]))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("isa", ["sse2", "avx2_fma", "avx512_vnni", "neon", "zve32x"])
def test_it_costs_a_small_part_of_portable_code(isa: str, turned: bool) -> None:
    for sizes in ((1, 16, 10), (4, 64, 33), (1, 100, 128)):
        graph = product_of(*sizes, turned, seed=1)
        vectors, portable = (make_plan(graph, "net", Target(isas()[name])).steps[0] for name in (isa, "c99"))
        assert vectors.choice.price.cycles < portable.choice.price.cycles / 3
