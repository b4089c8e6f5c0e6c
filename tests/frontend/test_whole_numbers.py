"""Whole numbers in Keras models: indices, classes, and what small types do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

GENERATIONS = pytest.mark.parametrize("generation", ["keras", "tf_keras"])
CHANCE = np.random.default_rng(3)


@GENERATIONS
def test_an_embedding_drops_fractions_of_its_indices(generation: str, tmp_path: Path) -> None:
    """The mask is that of the number before: 0.5 is seen, and takes row 0."""
    keras = pytest.importorskip(generation)
    x = keras.Input((4,))
    hidden = keras.layers.Embedding(6, 3, mask_zero=True)(x)
    model = keras.Model(x, [hidden, keras.layers.GlobalAveragePooling1D()(hidden)])
    given = np.array([[0.0, 0.5, 1.7, 5.9], [3.5, 2.5, 0.49, 0.0]], np.float32)
    expect_same(model, tmp_path, given)


@pytest.mark.parametrize("mode", ["multi_hot", "one_hot", "count"])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (2, 1), (2, 2, 3)], ids=str)
def test_classes_of_any_shape(shape: tuple[int, ...], mode: str, tmp_path: Path) -> None:
    """What Keras 3 computes of larger tensors differs from the shape that it announces."""
    keras = pytest.importorskip("keras")
    x = keras.Input(shape)
    model = keras.Model(x, keras.layers.CategoryEncoding(5, output_mode=mode)(x))
    expect_same(model, tmp_path, CHANCE.uniform(0, 5, (4, *shape)).astype(np.float32))


@GENERATIONS
@pytest.mark.parametrize("mode", ["multi_hot", "count"])
def test_classes_with_fractions(generation: str, mode: str, tmp_path: Path) -> None:
    keras = pytest.importorskip(generation)
    x = keras.Input((3,))
    model = keras.Model(x, keras.layers.CategoryEncoding(5, output_mode=mode)(x))
    expect_same(model, tmp_path, np.array([[0.2, 1.9, 4.7], [1.5, 1.2, 2.0]], np.float32))


def test_one_hot_drops_fractions(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3,))
    model = keras.Model(x, keras.ops.one_hot(x, 5))
    expect_same(model, tmp_path, np.array([[0.2, 1.9, 4.7], [-0.5, -1.5, 2.0]], np.float32))


@pytest.mark.parametrize("float_edge", [False, True])
def test_quantization_leaves_indices_whole(float_edge: bool, tmp_path: Path) -> None:
    """Eight bits cannot tell a thousand words apart."""
    keras = pytest.importorskip("keras")
    x = keras.Input((3,))
    hidden = keras.layers.Embedding(1000, 4, mask_zero=True)(x)
    pooled = keras.layers.GlobalAveragePooling1D()(hidden)
    model = keras.Model(x, keras.layers.Dense(3)(pooled))
    model.layers[1].set_weights([CHANCE.normal(size=(1000, 4)).astype(np.float32)])
    path, samples = tmp_path / "model.keras", tmp_path / "samples.npz"
    model.save(path)
    given = CHANCE.integers(1, 1000, (200, 3)).astype(np.float32)
    given[::2, 2] = 0
    np.savez(samples, x=given)
    graph = passes.run(load(path))
    recipe = Recipe(source=Source(samples), float_edge=float_edge)
    quantized = quantize_with(graph, recipe, ranges_of(graph, recipe))
    assert quantized.tensors[quantized.inputs[0]].dtype == "float32"
    wanted = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    found: Any = interpret.run(quantized, {quantized.inputs[0]: given})[quantized.outputs[0]]
    quant = quantized.tensors[quantized.outputs[0]].quant
    if quant is not None:
        found = (found.astype(np.float32) - quant.zero_point) * quant.scale
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()
