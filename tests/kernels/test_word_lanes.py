"""Depthwise convolutions of 16 bits with 32-bit sums, on any core: equal to the reference for any shape and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.site import site_of
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_values import CHANGES, CLAMPS, ordinary
from tests.support.many import run_many
from tests.support.quantized import full_range

NAME = "sliding_words"
(KERNEL,) = (kernel for kernel in variants("depthwise_conv2d") if kernel.name == NAME)
TARGET = Target(isas()["c99"], forced_kernels={"op": NAME})


def graphs() -> list[tuple[str, Graph]]:
    made, found = dict(cases()), []
    for seed, shape in enumerate(name for name in made if name.startswith("depthwise")):
        for turn, (clamp, limits) in enumerate(CLAMPS.items()):
            plain = ordinary(made[shape], "int16", seed, limits)
            found.append((f"{shape}, {clamp}", plain))
            for changed, change in list(CHANGES.items())[(seed + turn) % 8 :: 8]:
                graph = verify(change(np.random.default_rng([seed, len(changed)]), plain))
                found.append((f"{shape}, {clamp}, {changed}", graph))
    return found


@pytest.mark.slow
def test_any_shape_and_values(tmp_path: Path) -> None:
    mine = graphs()
    assert len(mine) > 50
    assert [name for name, graph in mine if refusal(KERNEL, site_of(graph, graph.ops[0]), TARGET)] == []
    runs = [(graph, full_range(graph, 4, seed=1)) for _, graph in mine]
    for (name, graph), (_, inputs), result in zip(
        mine, runs, run_many(runs, tmp_path, targets=[TARGET] * len(mine)), strict=True
    ):
        for output, wanted in interpret.run(graph, inputs).items():
            if output in graph.outputs:
                np.testing.assert_array_equal(result[output], wanted, err_msg=name)
