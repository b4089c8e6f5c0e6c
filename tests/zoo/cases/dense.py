"""Dense layers: every activation by name, ranks, no bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.zoo.case import KERAS3, WRITERS, Case, Keras, Model, chain, layer, one
from tests.zoo.cases.activation import ACTIVATIONS, KERAS3_ACTIVATIONS


def cases() -> Iterator[Case]:
    for activation in ACTIVATIONS:
        writers = (KERAS3,) if activation in KERAS3_ACTIVATIONS else WRITERS
        case = one("dense", activation, (9,), "Dense", units=6, activation=activation)
        yield replace(case, writers=writers, samples=4, input_spread=2.0)
    yield one("dense", "no_bias", (9,), "Dense", units=6, use_bias=False)
    yield one("dense", "one_to_one", (1,), "Dense", units=1)
    yield one("dense", "one_unit_sigmoid", (5,), "Dense", units=1, activation="sigmoid")
    yield one("dense", "one_unit_softmax", (5,), "Dense", units=1, activation="softmax")
    yield one("dense", "wide", (130,), "Dense", units=67, activation="relu")
    yield one("dense", "rank3", (4, 5), "Dense", units=3)
    yield one("dense", "rank3_softmax", (4, 5), "Dense", units=3, activation="softmax")
    yield one("dense", "rank4_no_bias", (3, 2, 5), "Dense", units=4, use_bias=False, activation="tanh")
    yield one("dense", "regularized", (9,), "Dense", units=6, kernel_regularizer="l2", bias_constraint="non_neg",
              kernel_initializer="he_uniform", activity_regularizer="l1", dtype="float32")  # fmt: skip
    for class_name, config in (("LeakyReLU", {"negative_slope": 0.1}), ("ReLU", {"max_value": 2.0}), ("ELU", {})):
        yield replace(_activation_is_a_layer(class_name, config), input_spread=2.0)
    yield chain("dense", "mlp", (12,), *_mlp((10, "relu"), (8, "tanh"), (4, "softmax")))
    yield chain("dense", "mlp_deep", (6,), *_mlp(*[(7, "elu")] * 6, (2, "linear")))


def _activation_is_a_layer(class_name: str, config: dict[str, Any]) -> Case:
    """`activation=` takes a layer as well as a name, and the file then holds that layer's configuration."""

    def build(keras: Keras) -> Model:
        x = keras.Input((9,))
        return keras.Model(x, layer(keras, "Dense", units=6, activation=layer(keras, class_name, **config))(x))

    return Case("dense", f"activation_layer_{class_name.lower()}", build)


def _mlp(*sizes: tuple[int, str]) -> Iterator[tuple[str, dict[str, object]]]:
    for units, activation in sizes:
        yield "Dense", {"units": units, "activation": activation}
