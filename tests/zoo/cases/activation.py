"""Activations as layers: by name, and the classes with options of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.zoo.case import KERAS3, WRITERS, Case, chain, one, tag

ACTIVATIONS = (
    "linear",
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
    "sigmoid",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "silu",
    "swish",
    "gelu",
    "exponential",
    "mish",
)
KERAS3_ACTIVATIONS = ("hard_silu", "hard_swish")

_RELU_OPTIONS = (
    {},
    {"max_value": 6.0},
    {"max_value": 1.5},
    {"negative_slope": 0.2},
    {"threshold": 0.5},
    {"max_value": 2.0, "negative_slope": 0.1},
    {"max_value": 3.0, "threshold": 1.0},
    {"negative_slope": 0.3, "threshold": 0.7},
    {"max_value": 4.0, "negative_slope": 0.25, "threshold": 1.5},
)


def cases() -> Iterator[Case]:
    for case in _plain_cases():
        yield replace(case, samples=4, input_spread=3.0)


def _plain_cases() -> Iterator[Case]:
    for name in ACTIVATIONS:
        writers = (KERAS3,) if name in KERAS3_ACTIVATIONS else WRITERS
        yield replace(one("activation", name, (4, 5), "Activation", activation=name), writers=writers)
    yield one("activation", "softmax_image", (3, 4, 5), "Activation", activation="softmax")
    yield chain("activation", "twice", (6,), _activation("relu"), _activation("sigmoid"))
    yield chain("activation", "clamp_of_clamp", (6,), ("ReLU", {"max_value": 6.0}), ("ReLU", {"max_value": 3.0}))
    yield chain("activation", "after_dense_with_activation", (6,), _dense("tanh"), _activation("relu"))
    for options in _RELU_OPTIONS:
        variant = "_".join(f"{key}_{tag(value)}" for key, value in options.items()) or "plain"
        yield one("relu", variant, (4, 5), "ReLU", **options)
    yield one("leakyrelu", "default", (4, 5), "LeakyReLU")
    for slope in (0.0, 0.01, 0.2):
        yield one("leakyrelu", tag(slope), (3, 4, 5), "LeakyReLU", negative_slope=slope)
    yield one("elu", "default", (4, 5), "ELU")
    yield one("elu", "0p3", (4, 5), "ELU", alpha=0.3)
    yield from _prelu_cases()
    yield from _softmax_cases()


def _activation(name: str) -> tuple[str, dict[str, object]]:
    return "Activation", {"activation": name}


def _dense(activation: str) -> tuple[str, dict[str, object]]:
    return "Dense", {"units": 5, "activation": activation}


def _prelu_cases() -> Iterator[Case]:
    yield one("prelu", "vector", (7,), "PReLU")
    yield one("prelu", "sequence", (4, 5), "PReLU")
    yield one("prelu", "sequence_shared_time", (4, 5), "PReLU", shared_axes=[1])
    yield one("prelu", "image", (4, 5, 3), "PReLU")
    for axes in ([1, 2], [1], [2], [3], [1, 2, 3]):
        yield one("prelu", f"image_shared_{tag(axes)}", (4, 5, 3), "PReLU", shared_axes=axes)


def _softmax_cases() -> Iterator[Case]:
    yield one("softmax", "default", (7,), "Softmax")
    yield one("softmax", "one_value", (1,), "Softmax")
    for axis in (-1, 1, 2, 3, -2, [1, 2], [2, 3], [-1, -2], [1, 2, 3]):
        yield one("softmax", f"axis_{tag(axis)}", (3, 4, 5), "Softmax", axis=axis)
