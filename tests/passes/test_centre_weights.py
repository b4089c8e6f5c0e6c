"""Weights with a zero point: the same integers by weights without, of which few are there twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.model.graph import Constant, Graph, Quant
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.dense import Dense
from nnbuild.passes.centre_weights import centre_weights
from tests.kernels.cases import single

DEPTH, FILTERS = 24, 5


def layer(weights: np.ndarray, zero: int, shape: tuple[int, ...]) -> Graph:
    """A dense layer of bytes by these weights."""
    graph = single(Dense(), [shape], {"kernel": np.zeros(weights.shape, np.float32)})
    (name,) = graph.constants
    constants = {name: Constant(name, weights, Quant((0.01,), zero))}
    ends = {graph.inputs[0]: Quant((0.5,), -3), graph.outputs[0]: Quant((2.0,), 7)}
    tensors = {n: replace(t, dtype="int8", quant=ends[n]) for n, t in graph.tensors.items()}
    return verify(replace(graph, tensors=tensors, constants=constants))


def drawn(low: int, high: int) -> np.ndarray:
    return np.random.default_rng(high).integers(low, high + 1, (DEPTH, FILTERS)).astype(np.int8)


def spread() -> np.ndarray:
    """Few weights at the end."""
    weights = drawn(-60, 60)
    weights[3, 1] = weights[20, 4] = 127
    return weights


@pytest.mark.parametrize("shape", [(DEPTH,), (6, DEPTH)])
@pytest.mark.parametrize(
    ("weights", "zero", "depth", "bits"),
    [
        (spread(), -9, DEPTH + 4, 8),
        (drawn(-60, 60), -9, DEPTH, 8),
        (drawn(-128, 127), 127, DEPTH, 16),
        (np.full((DEPTH, FILTERS), 127, np.int8), -128, DEPTH, 16),
        (drawn(-128, 127), 0, DEPTH, 8),
        (spread().astype(np.int16) + np.array([9, -9, 0, 1, 9], np.int16), 0, DEPTH + 4, 8),
        (drawn(-128, 127).astype(np.int16) * 2, 0, DEPTH, 16),
    ],
    ids=["few beyond", "none", "many", "all", "no zero point", "one of each channel", "many of each channel"],
)
def test_the_sums_are_the_same(weights: np.ndarray, zero: int, depth: int, bits: int, shape: tuple[int, ...]) -> None:
    graph = layer(weights, zero, shape)
    made = verify(centre_weights(graph))
    (kernel,) = (made.constants[op.constants["kernel"]] for op in made.ops if op.kind == "dense")
    assert kernel.data.shape == (depth, FILTERS) and kernel.quant is not None and kernel.quant.zero_point == 0
    assert kernel.data.dtype == f"int{bits}" and centre_weights(made).ops == made.ops
    x = np.random.default_rng(1).integers(-128, 128, (7, *shape)).astype(np.int8)
    one, other = (interpret.run(g, {graph.inputs[0]: x})[graph.outputs[0]] for g in (graph, made))
    np.testing.assert_array_equal(one, other)
