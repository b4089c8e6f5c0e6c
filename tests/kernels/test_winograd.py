"""Winograd's convolutions on pairs of 16 bits at their largest numbers: weights and inputs at their bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.target import Target
from tests.kernels.test_variants import FEATURES
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import quantized

pytestmark = pytest.mark.slow

SIZES = [(4, 8, 4, 4), (5, 9, 8, 5), (11, 17, 12, 3), (8, 8, 64, 6)]
"""Height, width, channels in and out."""
GROUPS = [(4, 8, 4, 32), (5, 9, 8, 48), (11, 17, 12, 32)]
"""The same for kernels of a group of output channels at a time."""
SINGLES = [f"winograd{size}_{of}" for size in ("", "_four") for of in ("single", "groups", "groups_wide")]
SIGNED = Clamp()
RECTIFIED = Clamp(0.0, None)


def extreme(size: tuple[int, int, int, int], clamp: Clamp, seed: int) -> Graph:
    """Only weights of -127 and 127, with scales that let outputs vary."""
    height, width, channels, filters = size
    chance = np.random.default_rng(seed)
    weights = chance.choice([-1.0, 1.0], (3, 3, channels, filters))
    attributes = Conv2D((1, 1), (1, 1), ((1, 1), (1, 1)), 1, clamp=clamp)
    held = {"kernel": weights, "bias": chance.normal(0, 3, filters)}
    graph = quantized(single(attributes, [(height, width, channels)], held), "int8", seed=seed)
    kernel = graph.constants[graph.ops[0].constants["kernel"]]
    return verify(replace(graph, constants={**graph.constants, kernel.name: replace(kernel, data=_bound(kernel.data))}))


def _bound(weights: np.ndarray) -> np.ndarray:
    return np.where(weights < 0, -127, 127).astype(np.int8)


def inputs_of(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """All inputs at one bound, at either, in stripes that follow the signs of the transforms, and random ones."""
    chance = np.random.default_rng(seed)
    shape = graph.tensors["x0"].shape
    stripes = np.where(np.indices(shape)[:2].sum(axis=0) % 2, 127, -128)
    some = chance.integers(-128, 128, (2, *shape))
    either = chance.choice([-128, 127], (2, *shape))
    whole = [np.full(shape, -128), np.full(shape, 127), stripes, -1 - stripes]
    return {"x0": np.stack([*whole, *some, *either]).astype(np.int8)}


@pytest.mark.turns(9)
@pytest.mark.parametrize(
    "kernel",
    [
        "winograd",
        "winograd_four",
        *(pytest.param(name, marks=[pytest.mark.full] * name.endswith("wide")) for name in SINGLES),
    ],
)
def test_extreme_numbers_are_exact(kernel: str, tmp_path: Path) -> None:
    sizes = GROUPS if "groups" in kernel else SIZES
    graphs = [extreme(size, clamp, seed) for seed, size in enumerate(sizes) for clamp in (SIGNED, RECTIFIED)]
    isa = "rv32im" if kernel in SINGLES else "armv7em_dsp"
    target = Target(isas()[isa], features=FEATURES, forced_kernels={"op": kernel})
    runs = [(graph, inputs_of(graph, seed)) for seed, graph in enumerate(graphs)]
    flags = ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    outputs = run_many(runs, tmp_path, targets=[target] * len(runs), flags=flags)
    for (graph, inputs), result in zip(runs, outputs, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(result[output], wanted[output])
