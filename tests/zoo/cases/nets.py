"""Whole small networks with random sizes: the shapes real models have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.zoo.case import Builder, Case, Keras, Model, layer

Tensor = Any
Random = np.random.Generator

_SEEDS = range(4)


def cases() -> Iterator[Case]:
    families: tuple[Callable[[Keras, Random], Model], ...] = (
        residual,
        inception,
        u_net,
        mobile,
        keyword_spotting,
        autoencoder,
        cnn_lstm,
        bidirectional_stack,
        two_towers,
        random_row,
    )
    for family in families:
        for seed in _SEEDS:
            yield Case("net", f"{family.__name__}_{seed}", _seeded(family, seed))


def _seeded(family: Callable[[Keras, Random], Model], seed: int) -> Builder:
    return lambda keras: family(keras, np.random.default_rng(seed))


def _pick(rng: Random, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _size(rng: Random, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _conv_bn(keras: Keras, x: Tensor, filters: int, *, kernel: int = 3, strides: int = 1, relu: bool = True) -> Tensor:
    x = layer(keras, "Conv2D", filters=filters, kernel_size=kernel, strides=strides, padding="same", use_bias=False)(x)
    x = layer(keras, "BatchNormalization")(x)
    return layer(keras, "ReLU")(x) if relu else x


def _classify(keras: Keras, x: Tensor, classes: int) -> Tensor:
    x = layer(keras, "GlobalAveragePooling2D")(x)
    return layer(keras, "Dense", units=classes, activation="softmax")(x)


def residual(keras: Keras, rng: Random) -> Model:
    image = keras.Input((_size(rng, 7, 12), _size(rng, 7, 12), 3))
    x = _conv_bn(keras, image, filters=(width := _size(rng, 3, 6)))
    for strides in (1, 2, 1):
        shortcut = x
        if strides == 2:
            width += _size(rng, 1, 3)
            shortcut = _conv_bn(keras, x, width, kernel=1, strides=2, relu=False)
        y = _conv_bn(keras, x, width, strides=strides)
        y = _conv_bn(keras, y, width, relu=False)
        x = layer(keras, "Activation", activation="relu")(layer(keras, "Add")([shortcut, y]))
    return keras.Model(image, _classify(keras, x, _size(rng, 2, 7)))


def inception(keras: Keras, rng: Random) -> Model:
    image = keras.Input((_size(rng, 6, 10), _size(rng, 6, 10), _size(rng, 1, 4)))
    x = image
    for _ in range(2):
        pooled = layer(keras, "MaxPooling2D", pool_size=3, strides=1, padding="same")(x)
        branches = [
            _conv_bn(keras, x, _size(rng, 1, 4), kernel=1),
            _conv_bn(keras, _conv_bn(keras, x, _size(rng, 1, 3), kernel=1), _size(rng, 2, 4)),
            _conv_bn(keras, x, _size(rng, 1, 3), kernel=5),
            _conv_bn(keras, pooled, _size(rng, 1, 3), kernel=1),
        ]
        x = layer(keras, "Concatenate")(branches)
    return keras.Model(image, _classify(keras, x, 4))


def u_net(keras: Keras, rng: Random) -> Model:
    image = keras.Input((8, 12, _size(rng, 1, 3)))
    width = _size(rng, 2, 4)
    high = _conv_bn(keras, image, width)
    middle = _conv_bn(keras, layer(keras, "MaxPooling2D", pool_size=2)(high), 2 * width)
    x = _conv_bn(keras, layer(keras, "MaxPooling2D", pool_size=2)(middle), 2 * width)
    for skip in (middle, high):
        if rng.random() < 0.5:
            x = layer(keras, "Conv2DTranspose", filters=width, kernel_size=_size(rng, 2, 4), strides=2, padding="same")(
                x
            )
        else:
            x = layer(keras, "UpSampling2D", size=2, interpolation=_pick(rng, "nearest", "bilinear"))(x)
        x = _conv_bn(keras, layer(keras, "Concatenate")([x, skip]), width)
    return keras.Model(image, layer(keras, "Conv2D", filters=1, kernel_size=1, activation="sigmoid")(x))


def mobile(keras: Keras, rng: Random) -> Model:
    """Inverted residuals with ReLU6, padded by a layer of its own as MobileNet's are."""
    image = keras.Input((_size(rng, 8, 12), _size(rng, 8, 12), 3))
    x = _conv_bn(keras, image, 4)
    for strides in (1, 2, 1):
        shortcut, width = x, 4
        x = layer(keras, "Conv2D", filters=width * _size(rng, 1, 2), kernel_size=1, use_bias=False)(x)
        x = layer(keras, "ReLU", max_value=6.0)(layer(keras, "BatchNormalization", epsilon=1e-3)(x))
        if strides == 2:
            x = layer(keras, "ZeroPadding2D", padding=((0, 1), (0, 1)))(x)
        padding = "valid" if strides == 2 else "same"
        x = layer(keras, "DepthwiseConv2D", kernel_size=3, strides=strides, padding=padding, use_bias=False)(x)
        x = layer(keras, "ReLU", max_value=6.0)(layer(keras, "BatchNormalization", epsilon=1e-3)(x))
        x = layer(keras, "BatchNormalization")(layer(keras, "Conv2D", filters=width, kernel_size=1, use_bias=False)(x))
        if strides == 1:
            x = layer(keras, "Add")([shortcut, x])
    return keras.Model(image, _classify(keras, x, 5))


def keyword_spotting(keras: Keras, rng: Random) -> Model:
    spectrogram = keras.Input((12, 7, 1))
    x = layer(keras, "Conv2D", filters=8, kernel_size=(_size(rng, 4, 10), 4), strides=2, padding="same")(spectrogram)
    x = layer(keras, "Activation", activation="relu")(layer(keras, "BatchNormalization")(x))
    for _ in range(_size(rng, 1, 3)):
        x = layer(keras, "DepthwiseConv2D", kernel_size=3, padding="same")(x)
        x = layer(keras, "Activation", activation="relu")(layer(keras, "BatchNormalization")(x))
        x = layer(keras, "Conv2D", filters=8, kernel_size=1, padding="same")(x)
        x = layer(keras, "Activation", activation="relu")(layer(keras, "BatchNormalization")(x))
    x = layer(keras, "Dropout", rate=0.4)(x)
    x = layer(keras, "AveragePooling2D", pool_size=(6, 4))(x)
    x = layer(keras, "Flatten")(x)
    return keras.Model(spectrogram, layer(keras, "Dense", units=6, activation="softmax")(x))


def autoencoder(keras: Keras, rng: Random) -> Model:
    model = keras.Sequential([keras.Input((width := _size(rng, 10, 20),))])
    for units in (9, 7, _size(rng, 3, 5), 7, 9):
        model.add(layer(keras, "Dense", units=units))
        model.add(layer(keras, "BatchNormalization"))
        model.add(layer(keras, "Activation", activation="relu"))
    model.add(layer(keras, "Dense", units=width))
    return model


def cnn_lstm(keras: Keras, rng: Random) -> Model:
    signal = keras.Input((_size(rng, 9, 12), _size(rng, 1, 4)))
    x = signal
    for _ in range(_size(rng, 1, 2)):
        x = layer(keras, "Conv1D", filters=_size(rng, 2, 6), kernel_size=3, padding=_pick(rng, "same", "causal"))(x)
        x = layer(keras, "LeakyReLU", negative_slope=0.1)(layer(keras, "BatchNormalization")(x))
    x = layer(keras, "MaxPooling1D", pool_size=2)(x)
    x = layer(keras, _pick(rng, "LSTM", "GRU"), units=_size(rng, 3, 6), return_sequences=True)(x)
    x = layer(keras, _pick(rng, "LSTM", "GRU"), units=_size(rng, 3, 6))(layer(keras, "Dropout", rate=0.2)(x))
    return keras.Model(signal, layer(keras, "Dense", units=1)(x))


def bidirectional_stack(keras: Keras, rng: Random) -> Model:
    x = sequence = keras.Input((_size(rng, 4, 8), 3))
    for _ in range(2):
        rnn = layer(keras, _pick(rng, "LSTM", "GRU", "SimpleRNN"), units=_size(rng, 2, 5), return_sequences=True)
        x = layer(keras, "Bidirectional", layer=rnn, merge_mode=_pick(rng, "concat", "sum", "mul", "ave"))(x)
    x = layer(keras, "LayerNormalization")(x)
    x = layer(keras, "TimeDistributed", layer=layer(keras, "Dense", units=4, activation="tanh"))(x)
    x = layer(keras, "GlobalMaxPooling1D")(x)
    return keras.Model(sequence, layer(keras, "Dense", units=3, activation="softmax")(x))


def two_towers(keras: Keras, rng: Random) -> Model:
    image, vector = keras.Input((8, 8, 2)), keras.Input((_size(rng, 2, 6),))
    x = layer(keras, "Flatten")(layer(keras, "AveragePooling2D", pool_size=2)(_conv_bn(keras, image, 3, strides=2)))
    y = layer(keras, "Dense", units=_size(rng, 2, 5), activation=_pick(rng, "elu", "selu", "gelu", "swish"))(vector)
    joined = layer(keras, "Concatenate")([x, y])
    heads = [
        layer(keras, "Dense", units=3, activation="softmax")(joined),
        layer(keras, "Dense", units=1, activation="softplus")(joined),
    ]
    return keras.Model([image, vector], heads)


def random_row(keras: Keras, rng: Random) -> Model:
    """Ten layers in a row, picked at random; three channels at least, since LayerNormalization of one is constant."""
    image = x = keras.Input((_size(rng, 9, 12), _size(rng, 9, 12), _size(rng, 1, 4)))
    for _ in range(10):
        x = _random_layer(keras, rng)(x)
    return keras.Model(image, layer(keras, "GlobalMaxPooling2D")(x))


def _random_layer(keras: Keras, rng: Random) -> Any:
    padding = "same"
    activation = _pick(rng, "linear", "relu", "tanh", "elu", "sigmoid", "softsign")
    makers: tuple[Callable[[], Any], ...] = (
        lambda: layer(keras, "Conv2D", filters=_size(rng, 3, 6), kernel_size=(_size(rng, 1, 4), _size(rng, 1, 4)),
                      padding=padding, strides=_pick(rng, 1, 1, 2), activation=activation),
        lambda: layer(keras, "DepthwiseConv2D", kernel_size=_size(rng, 1, 4), padding=padding, activation=activation),
        lambda: layer(keras, "SeparableConv2D", filters=_size(rng, 3, 6), kernel_size=3, padding=padding),
        lambda: layer(keras, "BatchNormalization"),
        lambda: layer(keras, "MaxPooling2D", pool_size=_size(rng, 1, 3), strides=1, padding=padding),
        lambda: layer(keras, "AveragePooling2D", pool_size=_size(rng, 1, 3), strides=1, padding=padding),
        lambda: layer(keras, "ZeroPadding2D", padding=_size(rng, 0, 1)),
        lambda: layer(keras, "Activation", activation=activation),
        lambda: layer(keras, "PReLU", shared_axes=[1, 2]),
        lambda: layer(keras, "Dropout", rate=0.5),
        lambda: layer(keras, "LayerNormalization", epsilon=1e-2),
        lambda: layer(keras, "Dense", units=_size(rng, 3, 6), activation=activation),
    )  # fmt: skip
    return makers[int(rng.integers(len(makers)))]()
