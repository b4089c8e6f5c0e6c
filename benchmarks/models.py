"""The models that the benchmarks measure: the example, those of ../shared, and shapes of well-known networks.

The latter have seeded weights and are made on first use, which needs TensorFlow, into the user's cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "models"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "nnbuild" / "benchmarks"


def path_of(name: str) -> Path | None:
    """The file of a model; None where it can be neither found nor made."""
    if name in FILES:
        return FILES[name] if FILES[name].is_file() else None
    path = CACHE / f"{name}.h5"
    if path.is_file():
        return path
    try:
        import keras
    except ImportError:
        return None
    keras.utils.clear_session()  # layers are numbered from the beginning, whatever was made before
    keras.utils.set_random_seed(7)
    CACHE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.h5")
    MAKERS[name](keras).save(part)
    part.rename(path)
    return path


def single_layers(keras: Any) -> Any:
    """One layer of each kind that microcontroller networks spend their time in, each on an input of its own."""
    k = keras.layers
    plain: list[tuple[tuple[int, ...], Any]] = [
        ((32, 32, 16), k.Conv2D(16, 3, padding="same", activation="relu", name="conv3x3_16_16")),
        ((16, 16, 32), k.Conv2D(32, 3, padding="same", activation="relu", name="conv3x3_32_32")),
        ((25, 5, 64), k.Conv2D(64, 1, activation="relu", name="conv1x1_64_64")),
        ((32, 32, 3), k.Conv2D(16, 3, padding="same", activation="relu", name="first_3_16")),
        ((25, 5, 64), k.DepthwiseConv2D(3, padding="same", activation="relu", name="depthwise_s1")),
        ((24, 24, 32), k.DepthwiseConv2D(3, strides=2, padding="same", activation="relu", name="depthwise_s2")),
        ((640,), k.Dense(128, activation="relu", name="dense_640_128")),
    ]
    inputs = [k.Input(shape) for shape, _ in plain]
    outputs = [layer(x) for x, (_, layer) in zip(inputs, plain, strict=True)]
    left, right = k.Input((16, 16, 32)), k.Input((16, 16, 32))
    outputs.append(k.Activation("relu")(k.Add(name="residual_add")([left, right])))
    return keras.Model([*inputs, left, right], outputs, name="single_layers")


def normalized(keras: Any, x: Any) -> Any:
    return keras.layers.BatchNormalization(momentum=0.0)(x)


def settled(model: Any) -> Any:
    """With the statistics of seeded samples in its normalizations: values of a usual size, as after training. They are
    rounded, since processors differ in the last bits of their sums."""
    samples = np.random.default_rng(7).uniform(size=(8, *model.input_shape[1:])).astype(np.float32)
    model(samples, training=True)
    for layer in model.layers:
        layer.set_weights([values.astype(np.float16).astype(np.float32) for values in layer.get_weights()])
    return model


def mobilenet(keras: Any, size: int, width: float, classes: int) -> Any:
    """MobileNet v1."""
    k = keras.layers

    def block(x: Any, filters: int, stride: int) -> Any:
        x = k.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(x)
        x = k.ReLU(6.0)(normalized(keras, x))
        x = k.Conv2D(int(filters * width), 1, use_bias=False)(x)
        return k.ReLU(6.0)(normalized(keras, x))

    x = image = k.Input((size, size, 3))
    x = k.Conv2D(int(32 * width), 3, strides=2, padding="same", use_bias=False)(x)
    x = k.ReLU(6.0)(normalized(keras, x))
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for filters, stride in plan:
        x = block(x, filters, stride)
    x = k.GlobalAveragePooling2D()(x)
    return keras.Model(image, k.Dense(classes, activation="softmax")(x))


def autoencoder(keras: Any) -> Any:
    """The shape of the machine sound benchmark: ten dense layers around a bottleneck of eight."""
    k = keras.layers
    x = sound = k.Input((640,))
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = k.ReLU()(normalized(keras, k.Dense(units)(x)))
    return keras.Model(sound, k.Dense(640)(x))


FILES = {
    "mnist": ROOT / "examples" / "mnist" / "mnist.h5",
    "resnet8": SHARED / "pretrainedResnet.h5",
    "kws": SHARED / "kws_ref_model.h5",
}
MAKERS: dict[str, Callable[[Any], Any]] = {
    "layers": single_layers,
    "vww": lambda keras: settled(mobilenet(keras, 96, 0.25, 2)),
    "autoencoder": lambda keras: settled(autoencoder(keras)),
}
