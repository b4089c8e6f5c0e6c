"""Files of Google's own quantizer for LiteRT (`ai-edge-quantizer`), against TFLite's reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.integer import limits
from tests.frontend.test_tflite_zoo import differences, reference

pytestmark = pytest.mark.oracle
quantizer = pytest.importorskip("ai_edge_quantizer")

STATIC = ("static_wi8_ai8", "static_wi8_ai16")
WEIGHTS_ONLY = ("weight_only_wi8_afp32", "weight_only_wi4_afp32")
DYNAMIC = ("dynamic_wi8_afp32", "dynamic_wi4_afp32", "dynamic_wi2c_afp32", "dynamic_wi4b32_afp32")


def image(m: Any, keras: Any) -> Any:
    """Convolutions with normalizations, squeeze and excite, swish, a softmax."""
    x = given = keras.Input((16, 16, 3))
    for filters in (8, 32):
        x = m.BatchNormalization()(m.Conv2D(filters, 3, padding="same", use_bias=False)(x))
        x = m.MaxPooling2D()(m.ReLU()(x))
    share = m.Dense(32, activation="sigmoid")(m.Dense(32, activation="relu")(m.GlobalAveragePooling2D()(x)))
    x = m.Multiply()([x, m.Reshape((1, 1, 32))(share)])
    x = m.Activation("swish")(m.DepthwiseConv2D(3, padding="same")(x))
    return keras.Model(
        given, m.Softmax()(m.Dense(10, kernel_initializer=keras.initializers.RandomNormal(0, 0.5))(m.Flatten()(x)))
    )


def encoder(m: Any, keras: Any) -> Any:
    x = given = keras.Input((12, 32))
    x = m.LayerNormalization()(x + m.MultiHeadAttention(2, 16)(x, x))
    x = m.LayerNormalization()(x + m.Dense(32)(m.Dense(64, activation="gelu")(x)))
    return keras.Model(given, m.Dense(32)(m.GlobalAveragePooling1D()(x)))


def words(m: Any, keras: Any) -> Any:
    given = keras.Input((12,), dtype="int32")
    x = m.GlobalAveragePooling1D()(m.Embedding(64, 32)(given))
    return keras.Model(given, m.Dense(32)(m.Dense(32, activation="relu")(x)))


def dilated(m: Any, keras: Any) -> Any:
    """Converters make blocks of what is between the taps; quantizers leave these in floats."""
    given = keras.Input((16, 12, 3))
    x = m.Conv2D(8, 3, dilation_rate=2, padding="same", activation="relu")(given)
    return keras.Model(given, m.Dense(16)(m.Flatten()(x)))


NETWORKS: dict[str, Callable[[Any, Any], Any]] = {"image": image, "encoder": encoder, "words": words}
OPEN = {"dilated": dilated}
"""Converted as Keras does by itself, with as many samples as one likes."""
LEFT_OUT = {("image", "dynamic_wi2c_afp32")}
"""TFLite itself computes no numbers: of 2 bits it has dense layers only."""


def rows(shape: tuple[int, ...], dtype: str) -> Array:
    chance = np.random.default_rng(2)
    if dtype == "int32":
        return chance.integers(0, 64, (16, *shape)).astype(np.int32)
    return chance.normal(size=(16, *shape)).astype(np.float32)


@cache
def converted(name: str) -> tuple[Path, Array]:
    """The network in floats, with a fixed batch, and samples."""
    keras = pytest.importorskip("keras")
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    model = (NETWORKS | OPEN)[name](keras.layers, keras)
    shape, dtype = tuple(model.inputs[0].shape[1:]), model.inputs[0].dtype
    folder = Path(mkdtemp())
    path = folder / f"{name}.tflite"
    if name in OPEN:
        path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
        return path, rows(shape, dtype)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, input_signature=[tf.TensorSpec((1, *shape), dtype)])
    archive.write_out(str(folder / "saved"), verbose=False)
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved")).convert())
    return path, rows(shape, dtype)


def quantized(name: str, way: str, folder: Path) -> tuple[Graph, Path, Array]:
    path, x = converted(name)
    made = quantizer.Quantizer(str(path), getattr(quantizer.recipe, way)())
    key, ends = next(iter(_signatures(path).items()))
    calibrated = made.calibrate({key: [{ends["inputs"][0]: v[None]} for v in x]}) if made.need_calibration else None
    out = folder / f"{name}-{way}.tflite"
    out.write_bytes(made.quantize(calibrated).quantized_model)
    graph = passes.run(load(out, "model"))
    return graph, out, as_input(graph, x)


def _signatures(path: Path) -> dict[str, Any]:
    from ai_edge_litert.interpreter import Interpreter

    return dict(Interpreter(str(path)).get_signature_list())


def as_input(graph: Graph, x: Array) -> Array:
    tensor = graph.tensors[graph.inputs[0]]
    if tensor.quant is None or tensor.is_whole:
        return x
    return np.clip(np.round(x / tensor.quant.scale) + tensor.quant.zero_point, *limits(tensor.dtype)).astype(
        tensor.dtype
    )


@pytest.mark.turns(4)
@pytest.mark.parametrize("way", STATIC)
def test_integers_are_equal_in_every_bit(way: str, tmp_path: Path) -> None:
    jobs = []
    for name in NETWORKS | OPEN:
        graph, path, x = quantized(name, way, tmp_path)
        wanted = reference(path, [[v[None]] for v in x])[0]
        assert len(np.unique(wanted)) >= 16
        jobs.append((name, graph, {graph.inputs[0]: x}, [wanted.reshape(len(x), -1)]))
    assert differences(jobs, tmp_path) == {}


@pytest.mark.parametrize("way", WEIGHTS_ONLY)
@pytest.mark.parametrize("name", NETWORKS)
def test_narrow_weights_of_float_networks(name: str, way: str, tmp_path: Path) -> None:
    graph, path, x = quantized(name, way, tmp_path)
    found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
    wanted = reference(path, [[v[None]] for v in x])[0].reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("way", DYNAMIC)
@pytest.mark.parametrize("name", NETWORKS)
def test_weights_of_dynamic_range_are_computed_with_in_floats(name: str, way: str, tmp_path: Path) -> None:
    """TFLite rounds the inputs of such layers to 8 bits first, which costs it about a hundredth."""
    if (name, way) in LEFT_OUT:
        return
    from ai_edge_litert.interpreter import Interpreter

    graph, path, x = quantized(name, way, tmp_path)
    found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
    interpreter = Interpreter(str(path))  # the reference kernels know no blocks
    interpreter.allocate_tensors()
    (end,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    for sample, row in zip(x, found, strict=True):
        interpreter.set_tensor(end["index"], sample[None])
        interpreter.invoke()
        wanted = interpreter.get_tensor(out["index"]).reshape(row.shape)
        assert np.abs(row - wanted).max() <= 0.02 * np.abs(found).max()
    assert any("Weights stored in 8 bits" in note for note in graph.notes)
