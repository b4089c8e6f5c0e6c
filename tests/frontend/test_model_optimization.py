"""Files of tensorflow-model-optimization: random networks trained for quantization, as .h5, .keras and .tflite."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.file_campaign import of_tflite
from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
MODELS = 4
TRAINER = """
import sys
import numpy as np
import tensorflow as tf
import tf_keras as keras
from tensorflow_model_optimization.quantization.keras import quantize_model

layers = keras.layers


def block(chance, x):
    filters, kind = int(chance.choice([4, 5, 8])), chance.integers(5)
    if kind == 0 and min(x.shape[1:3]) > 3:
        x = layers.Conv2D(filters, 3, strides=2, use_bias=bool(chance.integers(2)))(x)
        return layers.ReLU(6.0)(layers.BatchNormalization()(x))
    if kind == 1:
        return layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x)))
    if kind == 2:
        return layers.ReLU()(layers.Add()([x, layers.Conv2D(x.shape[-1], 3, padding="same")(x)]))
    if kind == 3:
        return layers.Concatenate()([x, layers.Conv2D(filters, 1, activation="relu")(x)])
    return layers.Conv2D(filters, 3, padding="same", activation=str(chance.choice(["relu", "linear"])))(x)


def network(chance):
    x = first = layers.Input((int(chance.integers(6, 14)), int(chance.integers(6, 14)), int(chance.choice([1, 3]))))
    for _ in range(int(chance.integers(1, 5))):
        x = block(chance, x)
    x = layers.GlobalAveragePooling2D()(x) if chance.integers(2) else layers.Flatten()(x)
    return keras.Model(first, layers.Dense(4, activation=(None, "softmax")[chance.integers(2)])(x))


for seed in range(int(sys.argv[1])):
    chance = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = quantize_model(network(chance))
    x = chance.normal(size=(32, *model.input_shape[1:])).astype(np.float32)
    model.compile("adam", "mse")
    model.fit(x, chance.normal(size=(32, 4)), epochs=1, batch_size=16, verbose=0)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    open(f"net{seed}.tflite", "wb").write(converter.convert())
    model.save(f"net{seed}.h5")
    model.save(f"net{seed}.keras")
    np.savez(f"net{seed}.npz", x=x[:5], y=model(x[:5], training=False).numpy())
"""


def result(path: Path, x: Array) -> Array:
    graph = passes.run(load(path))
    (name,) = graph.inputs
    return interpret.run(graph, {name: x.reshape(len(x), *graph.tensors[name].shape)})[graph.outputs[0]]


@pytest.mark.turns(4)
def test_networks_trained_for_quantization(tmp_path: Path) -> None:
    if find_spec("tensorflow_model_optimization") is None:
        pytest.skip("tensorflow-model-optimization is not installed (pip install nnbuild[oracle])")
    (tmp_path / "train.py").write_text(TRAINER)
    settings = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    command = [sys.executable, "train.py", str(MODELS)]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for seed in range(MODELS):
        kept = np.load(tmp_path / f"net{seed}.npz")
        x, y = kept["x"], kept["y"]
        for kind in ("h5", "keras"):
            found = result(tmp_path / f"net{seed}.{kind}", x)
            # A step of a tensor is taken the other way where TensorFlow adds in another order.
            assert np.abs(found - y).max() <= 0.05 * np.abs(y).max() + 1e-3, (seed, kind)
            assert np.isclose(found, y, rtol=1e-4, atol=1e-5).mean() > 0.9, (seed, kind)
        path = tmp_path / f"net{seed}.tflite"
        np.testing.assert_allclose(result(path, x), of_tflite(path, [x])[0], atol=1e-6, err_msg=f"net{seed}.tflite")
