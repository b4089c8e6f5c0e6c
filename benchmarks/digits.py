"""Larger networks for handwritten digits, trained here: LeNet-300-100 (266,200 weights) and LeNet-5 (430,500)."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

SEED, BATCH = 7, 128
EPOCHS = {"lenet-300-100": 8, "lenet-5": 4}


def trained(name: str, digits: Path, to: Path) -> Path:
    """Trains the network on the digits and saves it."""
    keras.utils.set_random_seed(SEED)
    with np.load(digits) as data:
        x, labels = data["x_train"][..., None].astype(np.float32) / np.float32(255), data["y_train"].astype(np.int32)
    model = _lenet_5() if name == "lenet-5" else _lenet_300_100()
    rate = keras.optimizers.schedules.CosineDecay(2e-3, EPOCHS[name] * len(x) // BATCH)
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    model.fit(x, labels, batch_size=BATCH, epochs=EPOCHS[name], verbose=0)
    model.save(to, include_optimizer=False)
    return to


def _lenet_300_100() -> keras.Model:
    image = keras.Input((28, 28, 1))
    x = layers.Flatten()(image)
    x = layers.Dense(300, activation="relu", name="fc1")(x)
    x = layers.Dense(100, activation="relu", name="fc2")(x)
    return keras.Model(image, layers.Dense(10, activation="softmax", name="fc3")(x), name="lenet_300_100")


def _lenet_5() -> keras.Model:
    image = keras.Input((28, 28, 1))
    x = layers.Conv2D(20, 5, activation="relu", name="conv1")(image)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(50, 5, activation="relu", name="conv2")(x)
    x = layers.Flatten()(layers.MaxPooling2D()(x))
    x = layers.Dense(500, activation="relu", name="fc1")(x)
    return keras.Model(image, layers.Dense(10, activation="softmax", name="fc2")(x), name="lenet_5")
