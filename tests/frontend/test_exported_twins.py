"""Keras' models and their exports are one network: the same operations, whatever an exporter makes of the layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret

pytest.importorskip("tflite")
pytest.importorskip("tf2onnx")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

MOVES = ("reshape", "transpose", "slice")
Build = Callable[[Any, Any], Any]


def encoder(m: Any, x: Any) -> Any:
    x = m.LayerNormalization()(m.Add()([x, m.MultiHeadAttention(2, 8)(x, x)]))
    y = m.Dense(16)(m.Dense(32, activation="gelu")(x))
    return m.Dense(3)(m.GlobalAveragePooling1D()(m.LayerNormalization(epsilon=1e-6)(m.Add()([x, y]))))


def convnext(m: Any, x: Any) -> Any:
    y = m.LayerNormalization(epsilon=1e-6)(m.DepthwiseConv2D(5, padding="same")(x))
    y = m.Dense(8)(m.Dense(32, activation="gelu")(y))
    return m.Dense(3)(m.GlobalAveragePooling2D()(m.Add()([x, y])))


def groups(m: Any, x: Any) -> Any:
    x = m.Activation("swish")(m.GroupNormalization(4)(m.Conv2D(16, 3, padding="same")(x)))
    return m.Dense(3)(m.GlobalMaxPooling2D()(m.ReLU()(m.GroupNormalization(-1)(m.Conv2D(8, 3)(x)))))


def temporal(m: Any, x: Any) -> Any:
    y = m.Activation("relu")(m.LayerNormalization()(m.Conv1D(16, 3, dilation_rate=2, padding="causal")(x)))
    return m.Dense(3)(m.Add()([x, y])[:, -1])


def gated(m: Any, x: Any) -> Any:
    y = m.SeparableConv1D(16, 5, padding="same", activation="swish")(x)
    return m.Dense(3)(m.GlobalAveragePooling1D()(m.RMSNormalization()(m.Multiply()([x, y]))))


def sloped(m: Any, x: Any) -> Any:
    y = m.PReLU(shared_axes=[1, 2])(m.Conv2D(8, 3)(x))
    return m.Dense(3)(m.Flatten()(m.AveragePooling2D(2)(m.LeakyReLU(0.1)(m.Conv2D(8, 3)(y)))))


def recurrent(m: Any, x: Any) -> Any:
    return m.Dense(3)(m.GRU(6)(m.LSTM(5, return_sequences=True)(x)))


ROWS, IMAGE = (12, 16), (12, 12, 8)
NETWORKS: dict[str, tuple[tuple[int, ...], Build]] = {
    "encoder": (ROWS, encoder),
    "ConvNeXt": (IMAGE, convnext),
    "groups": (IMAGE, groups),
    "temporal": (ROWS, temporal),
    "gated": (ROWS, gated),
    "slopes": (IMAGE, sloped),
    "recurrent": (ROWS, recurrent),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", NETWORKS)
def test_exports_are_the_network_of_the_keras_file(name: str, tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(1)
    shape, build = NETWORKS[name]
    x = keras.Input(shape, name="x")
    model, chance = keras.Model(x, build(keras.layers, x)), np.random.default_rng(1)
    for weights in model.weights:  # as training leaves them
        if len(weights.shape) == 1:
            weights.assign(chance.normal(1 if "gamma" in weights.path else 0, 0.3, weights.shape))
    model.save(tmp_path / "net.keras")
    signature = [keras.InputSpec(shape=(1, *shape), dtype="float32", name="x")]
    for form, ending in (("onnx", "onnx"), ("litert", "tflite")):
        model.export(tmp_path / f"net.{ending}", format=form, verbose=False, input_signature=signature)
    given = chance.normal(size=(3, *shape)).astype(np.float32)
    wanted = np.asarray(model(given))
    graphs = {ending: passes.run(load(tmp_path / f"net.{ending}")) for ending in ("keras", "onnx", "tflite")}
    for graph in graphs.values():
        found = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert kinds(graphs["onnx"]) == kinds(graphs["tflite"]) == kinds(graphs["keras"])


def kinds(graph: Graph) -> Counter[str]:
    return Counter(op.kind for op in graph.ops if op.kind not in MOVES)
