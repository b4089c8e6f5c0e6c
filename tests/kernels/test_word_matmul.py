"""Products of two 16-bit tensors: every set's kernels equal the reference, also where all numbers are extreme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.matmul import MatMul
from tests.kernels.test_variants import on_targets
from tests.support.graphs import single
from tests.support.quantized import full_range, quantized
from tests.support.references import equal_the_reference

SIZES = ((5, 7, 9), (13, 64, 33), (4, 510, 17), (17, 30, 40), (2, 1, 1), (7, 8, 100))
"""(rows, depth, columns)"""
KERNELS = ("_integers", "_words", "long_pairs")


def runs() -> Iterator[tuple[Graph, dict[str, Array]]]:
    chance = np.random.default_rng(1)
    for rows, depth, columns in SIZES:
        for turned, powers in ((False, (-14.0, -12.0)), (True, (-16.0, -15.0)), (True, (-13.0, -10.0))):
            right = (2, columns, depth) if turned else (2, depth, columns)
            graph = quantized(single(MatMul(turned), [(2, rows, depth), right]), "int16", rows, powers=powers)
            drawn = full_range(graph, 2, seed=1)
            ends = {name: np.where(chance.random(x.shape) < 0.5, -32768, 32767) for name, x in drawn.items()}
            lowest = {name: np.full_like(x[:1], -32768) for name, x in drawn.items()}
            yield (
                graph,
                {name: np.concatenate([x, ends[name].astype(np.int16), lowest[name]]) for name, x in drawn.items()},
            )


@pytest.mark.slow
@pytest.mark.turns(6)
@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize("here", [False, True], ids=["portable", "native"])
def test_products_equal_the_reference(here: bool, share: int, tmp_path: Path) -> None:
    cases, targets = on_targets(runs(), KERNELS, here)
    kernels = {name for target in targets for name in target.forced_kernels.values()}
    assert here or kernels == {k.name for k in variants("matmul") if k.name.endswith(KERNELS)}
    equal_the_reference(cases[share::2], targets[share::2], tmp_path, here)
