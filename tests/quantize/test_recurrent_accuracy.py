"""How far quantized recurrent models drift from float ones over 200 carried steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.report import as_float
from nnbuild.quantize.rewrite import rewrite
from tests.support.compiled import run_graph
from tests.support.recurrent import LAYERS, classifier

STEPS = 200
BARS = {("int8", 1.0): 0.03, ("int16", 1.0): 0.003, ("int16", 3.0): 0.003}


def sequence(seed: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).normal(size=(STEPS, 1, 8)).astype(np.float32)}


def models(name: str, seed: int, form: str, factor: float) -> tuple[Graph, Graph]:
    """The float model and the quantized one, which another sequence than the tested one has calibrated."""
    graph = classifier(LAYERS[name], seed, factor=factor)
    return graph, rewrite(graph, calibrate(graph, lambda: [sequence(500 + seed)], "minmax", 8), {}, form, False)


def distance(quantized: Graph, found: Array, exact: Array) -> float:
    return float(np.abs(as_float(quantized.tensors["y"], found) - exact).max())


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("form", "factor"), [pytest.param(*bar, marks=pytest.mark.slow if bar[1] == 3.0 else ()) for bar in BARS]
)
def test_error_of_the_softmax(name: str, form: str, factor: float) -> None:
    for seed in range(3):
        graph, quantized = models(name, seed, form, factor)
        inputs = sequence(1000 + seed)
        exact = interpret.run(graph, inputs, "float64")["y"]
        error = distance(quantized, interpret.run(quantized, inputs)["y"], exact)
        assert 0 < error <= BARS[form, factor], f"seed {seed}: {error}"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_compiled_c_is_as_near(form: str, tmp_path: Path) -> None:
    graph, quantized = models("lstm", 0, form, 1.0)
    inputs = sequence(1000)
    integers = {"x": interpret.as_input(quantized.tensors["x"], inputs["x"], "float32")}
    found = run_graph(quantized, integers, tmp_path)["y"]
    np.testing.assert_array_equal(found, interpret.run(quantized, integers)["y"])
    assert distance(quantized, found, interpret.run(graph, inputs, "float64")["y"]) <= BARS[form, 1.0]


def test_dense_behind_a_recurrent_layer_needs_its_16_bits() -> None:
    """With 8-bit weights in that layer alone the bar is missed: the reason for 16."""
    graph, quantized = models("gru", 0, "int16", 3.0)
    kernel = graph.constants["dense"].data
    assert quantized.constants["dense"].data.dtype == np.int16
    scale = np.abs(kernel).max(axis=0) / 127
    hidden = interpret.run(graph, sequence(1000), "float64")
    rough = hidden["after0"] @ (np.round(kernel / scale) * scale)
    powers = np.exp(rough - rough.max(axis=1, keepdims=True))
    error = np.abs(powers / powers.sum(axis=1, keepdims=True) - hidden["y"]).max()
    assert error > BARS["int16", 3.0]
