"""Layers of 16 bits with 32-bit sums, on any core: equal to the reference for any shape and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.dsp.patches import is_row
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.site import site_of
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_values import CHANGES, CLAMPS, biases_of, layer, ordinary, scales_of, with_
from tests.support.many import run_many
from tests.support.quantized import full_range


def enormous(chance: np.random.Generator, graph: Graph) -> Graph:
    """Sums of more than 32 bits in the first channel, which saturate, and half as large ones in the others."""
    scales, bias = scales_of(graph), biases_of(graph)
    _, _, x, out = layer(graph)
    assert x.quant is not None and out.quant is not None
    scales[0] = 1.3 * out.quant.scale / x.quant.scale
    scales[1:] = chance.uniform(0.5, 1.3, len(scales) - 1) * 2.0**-16 * out.quant.scale / x.quant.scale
    bias[0] = 2**31 * chance.choice([-1, 1])
    bias[1:] = 2**30 * chance.choice([-1, 1], len(scales) - 1)
    return with_(graph, scales, bias)


KERNELS = (
    *(("conv2d", "words", "c99"), ("dense", "words", "c99"), ("depthwise_conv2d", "sliding_words", "c99")),
    *(("conv2d", "two_by_two", "armv6m"), ("dense", "two_by_two", "armv6m"), ("dense", "one_by_four", "armv6m")),
    *(("conv2d", "words_short", "armv6m"), ("depthwise_conv2d", "sliding_words_short", "armv6m")),
)
"""Operation, kernel and set."""


def graphs(kind: str) -> list[tuple[str, Graph]]:
    """Every shape with a clamp and a change of its values, in turn."""
    clamps, changes, found = list(CLAMPS.items()), list(CHANGES.items()), []
    for seed, (name, maker) in enumerate(cases()):
        shape = maker()
        if len(shape.ops) > 1 or shape.ops[0].kind != kind:
            continue
        clamp, limits = clamps[seed % len(clamps)]
        plain = ordinary(maker, "int16", seed, limits)
        changed, change = changes[seed % len(changes)]
        found.append((f"{name}, {clamp}", plain))
        chance = np.random.default_rng([seed, len(changed)])
        found.append((f"{name}, {clamp}, {changed}", verify(change(chance, plain))))
        found.append((f"{name}, {clamp}, enormous", verify(enormous(chance, plain))))
    return found


@pytest.mark.turns(9)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "isa"), KERNELS)
def test_any_shape_and_values(kind: str, name: str, isa: str, tmp_path: Path) -> None:
    target = Target(isas()[isa], forced_kernels={"op": name})
    (kernel,) = (kernel for kernel in variants(kind) if kernel.name == name)
    mine = [each for each in graphs(kind) if name != "one_by_four" or is_row(site_of(each[1], each[1].ops[0]))]
    assert len(mine) > 10
    assert [name for name, graph in mine if refusal(kernel, site_of(graph, graph.ops[0]), target)] == []
    runs = [(graph, full_range(graph, 4, seed=1)) for _, graph in mine]
    results = run_many(runs, tmp_path, targets=[target] * len(mine))
    for (name, graph), (_, inputs), result in zip(mine, runs, results, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(result[output], wanted[output], err_msg=name)
