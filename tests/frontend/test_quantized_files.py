"""Models that Keras 3 has quantized with model.quantize(), against its own answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.frontend.keras_quantized import _along, _unpacked
from nnbuild.ops import interpret

ROWS = np.random.default_rng(4).integers(0, 9, (6, 5))


def model(keras: Any) -> Any:
    """Odd sizes, so that two numbers of 4 bits do not always fill a byte; weights that have been trained a little."""
    m, x = keras.layers, keras.Input((5,), dtype="int32")
    y = m.Embedding(9, 7, name="table")(x)
    y = m.EinsumDense("abc,cd->abd", (5, 6), bias_axes="d", name="einsum")(y)
    y = m.Dense(9, activation="relu", name="wide")(m.Flatten()(y))
    made = keras.Model(x, m.Dense(3, use_bias=False, name="last")(y))
    chance = np.random.default_rng(1)
    for layer in made.layers:
        layer.set_weights([w + 0.2 * chance.normal(size=w.shape).astype(np.float32) for w in layer.get_weights()])
    return made


def saved(mode: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(the answers in floats, those of the quantized model)"""
    keras = pytest.importorskip("keras")
    made = model(keras)
    before = made.predict(ROWS, verbose=0)
    made.quantize(mode)
    made.save(path)
    return before, made.predict(ROWS, verbose=0)


@pytest.mark.turns(2)
@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_weights_are_those_of_the_file(mode: str, tmp_path: Path) -> None:
    """Keras rounds the inputs of its int8 layers too, which float32 need not follow."""
    path = tmp_path / "model.keras"
    before, after = saved(mode, path)
    graph = passes.run(load(path))
    found = interpret.run(graph, {graph.inputs[0]: ROWS})[graph.outputs[0]]
    assert np.abs(after - before).max() > 1e-4  # so that the weights of the file are not those from before
    largest = np.abs(after).max()
    np.testing.assert_allclose(found, after, atol=largest * (1e-5 if mode == "int4" else 0.02))
    assert any(f"weights of {mode[-1]} bits" in note for note in graph.notes)


@pytest.mark.turns(3)
@pytest.mark.oracle
@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_layers_with_one_output(mode: str, low_rank: bool, tmp_path: Path) -> None:
    """Half of each of their bytes is empty. Weights of low rank are merged when Keras saves the model."""
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(3)
    m, path = keras.layers, tmp_path / "model.keras"
    made = keras.Sequential([keras.Input((5,)), m.Embedding(9, 1), m.Flatten(), m.Dense(6), m.Dense(1)])
    made.quantize(mode)
    for layer in made.layers:
        if low_rank and hasattr(layer, "enable_lora"):
            layer.enable_lora(2)
            for each in (w for w in layer.weights if "lora" in w.path):
                each.assign(0.3 * np.random.default_rng(2).normal(size=each.shape))
    made.save(path)
    after = keras.models.load_model(path).predict(ROWS, verbose=0)
    graph = passes.run(load(path))
    found = interpret.run(graph, {graph.inputs[0]: ROWS})[graph.outputs[0]]
    np.testing.assert_allclose(found, after, atol=np.abs(after).max() * (1e-5 if mode == "int4" else 0.02))


@pytest.mark.oracle
def test_h5_is_refused(tmp_path: Path) -> None:
    saved("int8", tmp_path / "model.h5")
    with pytest.raises(ModelError, match=r"files list its weights in another order\. Save the model as \.keras"):
        load(tmp_path / "model.h5")


def test_two_numbers_in_a_byte() -> None:
    packed = np.array([[0x2D, 0x87 - 256], [0x01, 0x00]], np.int8)
    np.testing.assert_array_equal(_unpacked("x", "kernel", packed, (3, 2)), [[-3, 7], [2, -8], [1, 0]])
    packed = np.array([[0x7D, 0x02], [0x18, 0x00]], np.int8)
    np.testing.assert_array_equal(_unpacked("x", "kernel", packed, (2, 3)), [[-3, 7, 2], [-8, 1, 0]])


@pytest.mark.turns(3)
@pytest.mark.oracle
@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize(
    ("equation", "shape"), [("abc,cde->abde", (5, 3, 5)), ("abc,bcd->ad", (7,)), ("abc,cbed->aed", (2, 3))]
)
def test_kernels_of_4_bits_and_three_axes(
    equation: str, shape: tuple[int, ...], block: int | None, tmp_path: Path
) -> None:
    """Keras stores them as matrices."""
    keras = pytest.importorskip("keras")
    x = keras.Input((5, 7))
    made = keras.Model(x, keras.layers.EinsumDense(equation, shape, bias_axes=equation[-1])(x))
    made.quantize("int4", keras.quantizers.Int4QuantizationConfig(block_size=block))
    made.save(tmp_path / "model.keras")
    values = np.random.default_rng(1).normal(size=(4, 5, 7)).astype(np.float32)
    graph = passes.run(load(tmp_path / "model.keras"))
    found = interpret.run(graph, {graph.inputs[0]: values})[graph.outputs[0]]
    wanted = made.predict(values, verbose=0)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_scales_lie_along_the_output_of_an_einsum() -> None:
    scale = np.arange(6, dtype=np.float32).reshape(1, 3, 1, 2)
    np.testing.assert_array_equal(_along(scale, "ced", "acbd")[:, 0], scale[0, :, 0])
