"""Write a ResNet50 with a small head (24 million parameters, 98 MB): `python tests/zoo/big.py --out DIR`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.zoo.large import SEED, main, seed_weights

IMAGE = (64, 64, 3)
CLASSES = 430


def build() -> Any:
    import keras

    body = keras.applications.ResNet50(include_top=False, weights=None, input_shape=IMAGE, pooling="avg")
    model = keras.Model(body.inputs, keras.layers.Dense(CLASSES, activation="softmax")(body.outputs[0]), name="big")
    seed_weights(model)
    _measure_statistics(keras, model)
    return model


def _measure_statistics(keras: Any, model: Any) -> None:
    """Let every BatchNormalization learn the range it really sees: random statistics explode over 50 layers."""
    normal = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [layer.momentum for layer in normal]
    for layer in normal:
        layer.momentum = 0.0
    images = np.random.default_rng(SEED + 2).normal(size=(8, *IMAGE)).astype(np.float32)
    model(images, training=True)
    for layer, momentum in zip(normal, momenta, strict=True):
        layer.momentum = momentum


if __name__ == "__main__":
    main("big", build)
