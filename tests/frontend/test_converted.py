"""Models that TensorFlow's converter writes by its default call, with the batch open, against TFLite's reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.frontend.test_layers import encoder
from tests.frontend.test_tflite_zoo import reference, wrong

pytestmark = pytest.mark.oracle


def u_net(keras: Any) -> Any:
    m, x = keras.layers, keras.Input((8, 8, 3))
    wide = m.Conv2D(4, 3, padding="same", activation="relu")(x)
    deep = m.Conv2D(6, 3, padding="same", activation="relu")(m.MaxPooling2D()(wide))
    back = m.Conv2DTranspose(4, 2, strides=2, padding="same")(deep)
    return keras.Model(x, m.Conv2D(2, 1, activation="sigmoid")(m.Concatenate()([wide, back])))


def squeeze_excite(keras: Any) -> Any:
    m, x = keras.layers, keras.Input((6, 6, 3))
    y = m.Conv2D(8, 3, padding="same", activation="relu")(x)
    gate = m.Dense(4, activation="relu")(m.Reshape((1, 1, 8))(m.GlobalAveragePooling2D()(y)))
    y = m.Multiply()([y, m.Dense(8, activation="sigmoid")(gate)])
    return keras.Model(x, m.Dense(3)(m.Flatten()(y)))


def transformer(keras: Any) -> Any:
    x = keras.Input((5, 8))
    return keras.Model(x, encoder(keras, x))


MODELS: dict[str, Callable[[Any], Any]] = {"u-net": u_net, "squeeze": squeeze_excite, "transformer": transformer}


def converted(tf: Any, model: Any, integers: bool, given: Array) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if integers:

        def samples() -> Iterator[list[Array]]:
            yield from ([row[None]] for row in given)

        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
    return bytes(converter.convert())


@pytest.mark.turns(2)
@pytest.mark.parametrize("integers", [False, True], ids=["float", "int8"])
@pytest.mark.parametrize("name", MODELS)
def test_default_call(name: str, integers: bool, tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(3)
    model = MODELS[name](keras)
    given = np.random.default_rng(2).normal(size=(6, *model.inputs[0].shape[1:])).astype(np.float32)
    path = tmp_path / "model.tflite"
    path.write_bytes(converted(tf, model, integers, given))
    graph = passes.run(load(path))
    found = interpret.run(graph, {graph.inputs[0]: given})
    wanted = reference(path, [[row] for row in given])
    for output, answer in zip(graph.outputs, wanted, strict=True):
        assert wrong(found[output], answer) == 0
        if integers:
            np.testing.assert_array_equal(found[output], answer.reshape(found[output].shape))
