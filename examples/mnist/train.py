"""Train the MNIST example: a small CNN that reads handwritten digits.

Run from anywhere, with TensorFlow installed:

    python examples/mnist/train.py

It writes mnist.h5, samples.npz and calibration.npz next to itself and prints the accuracy on the 10,000 test images.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

HERE = Path(__file__).resolve().parent
LOCAL_MNIST = HERE.parents[1].parent / "shared" / "data" / "mnist.npz"

SEED = 7
EPOCHS = 24
BATCH = 128
PEAK_LEARNING_RATE = 4e-3
LARGEST_SHIFT = 2  # pixels, in each direction

SAMPLES = 200
CALIBRATION_IMAGES = 256

Images = np.ndarray
Labels = np.ndarray


def load_mnist() -> tuple[Images, Labels, Images, Labels]:
    """Training and test images as float32 of shape (n, 28, 28, 1) in 0..1, with their labels."""
    if LOCAL_MNIST.is_file():
        with np.load(LOCAL_MNIST) as data:
            parts = [data[key] for key in ("x_train", "y_train", "x_test", "y_test")]
    else:
        (x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()
        parts = [x_train, y_train, x_test, y_test]
    x_train, y_train, x_test, y_test = parts
    return to_units(x_train), y_train.astype(np.int32), to_units(x_test), y_test.astype(np.int32)


def to_units(pixels: np.ndarray) -> Images:
    return (pixels.astype(np.float32) / np.float32(255.0))[..., np.newaxis]


def convolution(x: keras.KerasTensor, filters: int, name: str) -> keras.KerasTensor:
    """A dense 3x3 convolution; BatchNormalization brings the bias, so the convolution needs none."""
    x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False, name=f"{name}_conv")(x)
    x = layers.BatchNormalization(name=f"{name}_bn")(x)
    return layers.ReLU(name=f"{name}_relu")(x)


def separable(x: keras.KerasTensor, filters: int, strides: int, name: str) -> keras.KerasTensor:
    """A 3x3 depthwise convolution and a 1x1 one: about an eighth of the work of a dense 3x3 convolution."""
    x = layers.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False, name=f"{name}_depthwise")(x)
    x = layers.BatchNormalization(name=f"{name}_depthwise_bn")(x)
    x = layers.ReLU(name=f"{name}_depthwise_relu")(x)
    x = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_pointwise")(x)
    x = layers.BatchNormalization(name=f"{name}_pointwise_bn")(x)
    return layers.ReLU(name=f"{name}_pointwise_relu")(x)


def build() -> keras.Model:
    image = keras.Input((28, 28, 1), name="image")
    x = convolution(image, 16, "stem")  # 14 x 14 x 16
    x = separable(x, 24, strides=1, name="block1")  # 14 x 14 x 24
    x = separable(x, 32, strides=2, name="block2")  # 7 x 7 x 32
    x = separable(x, 48, strides=1, name="block3")  # 7 x 7 x 48
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    x = layers.Dense(10, name="logits")(x)
    digit = layers.Softmax(name="digit")(x)
    return keras.Model(image, digit, name="mnist")


def count_macs(model: keras.Model) -> int:
    """Multiply-accumulates of one inference: those of the convolutions and of the dense layer."""
    macs = 0
    for layer in model.layers:
        if isinstance(layer, layers.DepthwiseConv2D):
            macs += layer.kernel.shape[0] * layer.kernel.shape[1] * int(np.prod(layer.output.shape[1:]))
        elif isinstance(layer, layers.Conv2D):
            macs += int(np.prod(layer.kernel.shape)) * int(np.prod(layer.output.shape[1:3]))
        elif isinstance(layer, layers.Dense):
            macs += int(np.prod(layer.kernel.shape))
    return macs


def shifted(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The digit moved by up to LARGEST_SHIFT pixels: a cheap way to a net that holds on unseen handwriting."""
    padded = tf.pad(image, [[LARGEST_SHIFT, LARGEST_SHIFT], [LARGEST_SHIFT, LARGEST_SHIFT], [0, 0]])
    return tf.image.random_crop(padded, [28, 28, 1], seed=SEED), label


def train(model: keras.Model, images: Images, labels: Labels) -> None:
    steps = len(images) // BATCH
    data = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(len(images), seed=SEED)
        .map(shifted)
        .batch(BATCH, drop_remainder=True)
        .prefetch(2)
    )
    rate = keras.optimizers.schedules.CosineDecay(
        PEAK_LEARNING_RATE / 20, EPOCHS * steps, warmup_target=PEAK_LEARNING_RATE, warmup_steps=steps
    )
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=EPOCHS, verbose=2)


def evenly_by_label(labels: Labels, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `count` images, the same number of each digit, in random order."""
    each = -(-count // 10)
    chosen = [rng.permutation(np.flatnonzero(labels == digit))[:each] for digit in range(10)]
    return rng.permutation(np.concatenate(chosen))[:count]


def main() -> None:
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    x_train, y_train, x_test, y_test = load_mnist()

    model = build()
    train(model, x_train, y_train)
    correct = np.argmax(model.predict(x_test, batch_size=500, verbose=0), axis=-1) == y_test
    print(f"test accuracy: {100 * correct.mean():.2f} % ({correct.sum()} of {correct.size} images)")
    print(f"parameters: {model.count_params()}, multiply-accumulates per image: {count_macs(model)}")

    model.save(HERE / "mnist.h5", include_optimizer=False)
    rng = np.random.default_rng(SEED)
    shown = evenly_by_label(y_test, SAMPLES, rng)
    golden = model.predict(x_test[shown], verbose=0)
    np.savez_compressed(HERE / "samples.npz", x=x_test[shown], labels=y_test[shown], y=golden)
    ranges = evenly_by_label(y_train, CALIBRATION_IMAGES, rng)
    np.savez_compressed(HERE / "calibration.npz", x=x_train[ranges])


if __name__ == "__main__":
    main()
