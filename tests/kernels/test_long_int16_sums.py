"""int16 layers whose sums need more than 32 bits: all sets equal the reference, also where sums are extreme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.integer_kinds import MOST, pieces
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from tests.kernels.test_variants import on_targets
from tests.support.graphs import single
from tests.support.quantized import full_range, quantized
from tests.support.references import equal_the_reference

KERNELS = ("_integers", "_integers_cut", "_long", "long_rows")
CHANCE = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return CHANCE.normal(0, 0.5, shape).astype(np.float32)


def signs(*shape: int) -> Array:
    return np.where(CHANCE.random(shape) < 0.5, -1, 1).astype(np.float32)


MAKERS: dict[str, Callable[[], Graph]] = {
    "dense": lambda: single(Dense(), [(3000,)], {"kernel": signs(3000, 19), "bias": normal(19)}),
    "rows": lambda: single(Dense(), [(3, 3001)], {"kernel": signs(3001, 20)}),
    "padded": lambda: single(
        Conv2D(padding=((1, 1), (1, 1))), [(4, 5, 300)], {"kernel": normal(3, 3, 300, 33), "bias": normal(33)}
    ),
    "strided": lambda: single(Conv2D(strides=(2, 2)), [(6, 7, 290)], {"kernel": signs(3, 2, 290, 9)}),
    "dilated": lambda: single(Conv2D(dilation=(2, 2)), [(6, 7, 290)], {"kernel": signs(2, 3, 290, 18)}),
    "points": lambda: single(Conv2D(), [(3, 3, 2500)], {"kernel": signs(1, 1, 2500, 40), "bias": normal(40)}),
}


def runs() -> Iterator[tuple[Graph, dict[str, Array]]]:
    """Numbers of the whole range, and ones that agree in sign with all weights of the first channel."""
    for seed, make in enumerate(MAKERS.values()):
        graph = quantized(make(), "int16", seed, powers=((-6.0, -4.0), (-9.0, -7.0), (0.0, 2.0))[seed % 3])
        (name,), (drawn,) = graph.inputs, full_range(graph, 1, seed=1).values()
        kernel = next(c.data for c in graph.constants.values() if c.data.dtype == np.int8)
        positive = np.resize(kernel.reshape(-1, kernel.shape[-1])[:, 0] >= 0, drawn.shape)
        ends = [np.where(positive == agree, 32767, -32768).astype(np.int16) for agree in (True, False)]
        yield graph, {name: np.concatenate([drawn, *ends])}


@pytest.mark.slow
@pytest.mark.turns(6)
@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize("here", [False, True], ids=["portable", "native"])
def test_sums_equal_the_reference(here: bool, share: int, tmp_path: Path) -> None:
    cases, targets = on_targets(runs(), KERNELS, here)
    taken = {name for target in targets for name in target.forced_kernels.values()}
    assert here or taken >= {k.name for k in variants("dense") if k.name.endswith(("_integers", "_long", "long_rows"))}
    equal_the_reference(cases[share::2], targets[share::2], tmp_path, here)


@pytest.mark.parametrize("together", [1, 4, 8])
@pytest.mark.parametrize("depth", [1, 2])
def test_pieces_fit_32_bits_and_are_few(depth: int, together: int) -> None:
    weights = np.full((3 * 1000 * depth, 2), 127, np.int8)
    found = pieces(weights, 3, depth, together)
    assert sum(found) == 1000 and all(size % together == 0 for size in found[:-1])
    assert max(found) * depth * 127 * 32768 <= MOST
    assert len(found) <= 2 + 1000 * depth * 127 * 32768 // MOST
