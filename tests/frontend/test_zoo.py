"""Every model of the zoo, imported and computed in numpy, against Keras' own answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.sanitize import escape_name
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.zoo import KERAS3, TFKERAS, names, zoo

pytestmark = pytest.mark.oracle

CASES = [(writer, name) for writer in (KERAS3, TFKERAS) for name in names(writer)]

TOLERANCE = 1e-5
"""Absolute plus relative."""

DOUBTFUL = 4.0
"""Where a model is ill-conditioned: how many times the error of float32 itself is allowed."""


def numbered(golden: dict[str, np.ndarray], stem: str, count: int) -> list[np.ndarray]:
    return [golden[stem if count == 1 else f"{stem}{i}"] for i in range(count)]


def assert_close(single: np.ndarray, double: np.ndarray, golden: np.ndarray, what: str) -> None:
    """Both precisions against Keras' answer, which may err as far as float32 does against float64 here."""
    assert single.shape == double.shape == golden.shape, what
    allowed = TOLERANCE * (1 + np.abs(golden)) + DOUBTFUL * np.abs(single - double)
    for found in (single, double):
        error = np.abs(found - golden)
        assert (error <= allowed).all(), f"{what}: {error.max()}"


def compare(graph: Graph, golden: dict[str, np.ndarray], layers: bool) -> None:
    inputs = dict(zip(graph.inputs, numbered(golden, "x", len(graph.inputs)), strict=True))
    single = interpret.run(graph, inputs)
    double = interpret.run(graph, inputs, "float64")
    for name, answer in zip(graph.outputs, numbered(golden, "y", len(graph.outputs)), strict=True):
        assert_close(single[name], double[name], answer, name)
    if layers:
        wanted = {
            escape_name(key.partition("/")[2]): value for key, value in golden.items() if key.startswith("layer/")
        }
        labelled = {tensor.layer: name for name, tensor in graph.tensors.items() if tensor.layer is not None}
        assert wanted.keys() <= labelled.keys()
        for layer, answer in wanted.items():
            assert_close(single[labelled[layer]], double[labelled[layer]], answer, f"layer {layer}")


def check(path: Path, golden: dict[str, np.ndarray]) -> None:
    graph = load(path)
    compare(graph, golden, layers=True)
    compare(passes.run(graph), golden, layers=False)


@pytest.mark.parametrize(("writer", "name"), CASES, ids=[f"{writer}-{name}" for writer, name in CASES])
def test_agrees_with_keras(writer: str, name: str) -> None:
    directory = zoo(writer)
    with np.load(directory / f"{name}.npz") as file:
        golden = dict(file)
    found = [path for suffix in ("h5", "keras") if (path := directory / f"{name}.{suffix}").exists()]
    assert found
    for path in found:
        check(path, golden)
