"""Layers that join several tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.zoo.case import Case, Keras, Model, layer, tag

_MERGES = ("Add", "Subtract", "Multiply", "Maximum", "Minimum", "Average", "Concatenate")
_IMAGE = (4, 5, 3)

_BROADCASTS = (
    ("one_pixel", (_IMAGE, (1, 1, 3))),
    ("one_channel", (_IMAGE, (4, 5, 1))),
    ("one_column", (_IMAGE, (4, 1, 3))),
    ("both_ways", ((4, 1, 3), (1, 5, 3))),
    ("vector_on_image", (_IMAGE, (3,))),
    ("vector_first", ((3,), (6, 3))),
    ("one_value", ((6, 4), (1, 1))),  # 4 channels: Keras takes 3 values for 3 samples for a bias of 3 channels
)


def cases() -> Iterator[Case]:
    for merge in _MERGES:
        yield _merge(merge, "vectors", ((6,), (6,)))
        yield _merge(merge, "images", (_IMAGE, _IMAGE))
        if merge != "Subtract":
            yield _merge(merge, "three", (_IMAGE, _IMAGE, _IMAGE))
    for merge in ("Add", "Subtract", "Multiply", "Maximum", "Minimum", "Average"):
        for variant, shapes in _BROADCASTS:
            yield _merge(merge, f"broadcast_{variant}", shapes)
    yield _merge("Add", "five", ((6,),) * 5)
    yield _merge("Average", "four", ((6,),) * 4)
    yield _merge("Concatenate", "sizes", ((4, 5, 1), (4, 5, 7), (4, 5, 2)))
    for axis in (1, 2, 3, -2, -3):
        yield _merge("Concatenate", f"axis_{tag(axis)}", (_IMAGE, _IMAGE), axis=axis)
    yield _merge("Concatenate", "axis_1_sizes", ((2, 5, 3), (1, 5, 3), (3, 5, 3)), axis=1)
    yield _merge("Concatenate", "time", ((3, 4), (5, 4)), axis=1)
    for merge in _MERGES:
        yield Case(merge.lower(), "with_itself", _with_itself(merge))
    yield Case("add", "of_branches", _branches("Add"))
    yield Case("multiply", "of_branches", _branches("Multiply"))
    yield Case("concatenate", "of_branches", _branches("Concatenate"))
    yield Case("concatenate", "nested", _concatenate_twice)
    yield Case("multiply", "squeeze_excite", _squeeze_excite)


def _merge(class_name: str, variant: str, shapes: tuple[tuple[int, ...], ...], /, **config: Any) -> Case:
    def build(keras: Keras) -> Model:
        inputs = [keras.Input(shape) for shape in shapes]
        return keras.Model(inputs, layer(keras, class_name, **config)(inputs))

    return Case(class_name.lower(), variant, build)


def _with_itself(class_name: str) -> Any:
    def build(keras: Keras) -> Model:
        x = keras.Input((6,))
        return keras.Model(x, layer(keras, class_name)([x, x]))

    return build


def _branches(class_name: str) -> Any:
    def build(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        left = layer(keras, "Conv2D", filters=3, kernel_size=3, padding="same")(x)
        right = layer(keras, "DepthwiseConv2D", kernel_size=3, padding="same", activation="relu")(x)
        return keras.Model(x, layer(keras, "ReLU")(layer(keras, class_name)([left, right, x])))

    return build


def _concatenate_twice(keras: Keras) -> Model:
    x = keras.Input((5,))
    left, right = (layer(keras, "Dense", units=3, activation=name)(x) for name in ("relu", "tanh"))
    inner = layer(keras, "Concatenate")([left, right])
    return keras.Model(x, layer(keras, "Concatenate")([inner, x, left]))


def _squeeze_excite(keras: Keras) -> Model:
    x = keras.Input((4, 5, 6))
    pooled = layer(keras, "GlobalAveragePooling2D")(x)
    gate = layer(keras, "Dense", units=2, activation="relu")(pooled)
    gate = layer(keras, "Dense", units=6, activation="sigmoid")(gate)
    gate = layer(keras, "Reshape", target_shape=(1, 1, 6))(gate)
    return keras.Model(x, layer(keras, "Multiply")([x, gate]))
