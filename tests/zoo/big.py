"""Write a ResNet50 with a small head (24 million parameters, 98 MB): `python tests/zoo/big.py --out DIR`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.zoo.large import main, measure_statistics, seed_weights

IMAGE = (64, 64, 3)
CLASSES = 430


def build() -> Any:
    import keras

    body = keras.applications.ResNet50(include_top=False, weights=None, input_shape=IMAGE, pooling="avg")
    model = keras.Model(body.inputs, keras.layers.Dense(CLASSES, activation="softmax")(body.outputs[0]), name="big")
    seed_weights(model)
    measure_statistics(model, IMAGE)
    return model


if __name__ == "__main__":
    main("big", build)
