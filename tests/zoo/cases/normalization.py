"""BatchNormalization alone and beside what it can be folded into, LayerNormalization, Normalization, Rescaling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.zoo.case import TFKERAS, Case, Keras, Model, Step, chain, layer, one, tag

_IMAGE = (6, 5, 4)
_SEQUENCE = (6, 4)
_VECTOR = (5,)


def cases() -> Iterator[Case]:
    yield from _batch_normalization_alone()
    yield from _batch_normalization_in_a_row()
    yield from _batch_normalization_in_a_graph()
    yield from _layer_normalization()
    yield from _preprocessing()


def _bn(**options: Any) -> Step:
    return "BatchNormalization", options


def _batch_normalization_alone() -> Iterator[Case]:
    for variant, shape in (("vector", _VECTOR), ("sequence", _SEQUENCE), ("image", _IMAGE)):
        yield one("bn", variant, shape, "BatchNormalization")
    for axis in (1, 2, 3, -1, -2):
        yield one("bn", f"axis_{tag(axis)}", _IMAGE, "BatchNormalization", axis=axis)
    yield one("bn", "sequence_axis_1", _SEQUENCE, "BatchNormalization", axis=1)
    two_axes = one("bn", "axes_2x3", _IMAGE, "BatchNormalization", axis=[2, 3])
    yield replace(two_axes, writers=(TFKERAS,))  # Keras 3 takes a single axis
    one_axis_in_a_list = one("bn", "axis_in_list", _IMAGE, "BatchNormalization", axis=[3])
    yield replace(one_axis_in_a_list, writers=(TFKERAS,))
    yield one("bn", "no_scale", _IMAGE, "BatchNormalization", scale=False)
    yield one("bn", "no_center", _IMAGE, "BatchNormalization", center=False)
    yield one("bn", "no_scale_no_center", _VECTOR, "BatchNormalization", scale=False, center=False)
    renormalized = one("bn", "renorm", _IMAGE, "BatchNormalization", renorm=True)
    yield replace(renormalized, writers=(TFKERAS,))  # Keras 3 has no such option
    yield one("bn", "epsilon", _IMAGE, "BatchNormalization", epsilon=0.1, momentum=0.5)


def _batch_normalization_in_a_row() -> Iterator[Case]:
    relu: Step = ("ReLU", {})
    neighbours: tuple[tuple[str, tuple[int, ...], Step], ...] = (
        ("conv2d", _IMAGE, ("Conv2D", {"filters": 3, "kernel_size": 3, "use_bias": False})),
        ("conv2d_bias_same", _IMAGE, ("Conv2D", {"filters": 3, "kernel_size": 3, "padding": "same"})),
        ("conv2d_groups", _IMAGE, ("Conv2D", {"filters": 4, "kernel_size": 2, "groups": 2})),
        ("conv1d", _SEQUENCE, ("Conv1D", {"filters": 3, "kernel_size": 3})),
        ("conv1d_causal", _SEQUENCE, ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "causal"})),
        ("depthwise", _IMAGE, ("DepthwiseConv2D", {"kernel_size": 3, "use_bias": False})),
        ("depthwise_multiplier", _IMAGE, ("DepthwiseConv2D", {"kernel_size": 3, "depth_multiplier": 2})),
        ("separable", _IMAGE, ("SeparableConv2D", {"filters": 3, "kernel_size": 3, "padding": "same"})),
        ("transpose", _IMAGE, ("Conv2DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"})),
        ("dense", _VECTOR, ("Dense", {"units": 4})),
        ("dense_no_bias", _VECTOR, ("Dense", {"units": 4, "use_bias": False})),
        ("dense_rank3", _SEQUENCE, ("Dense", {"units": 3})),
    )
    for variant, shape, neighbour in neighbours:
        yield chain("bn", f"after_{variant}", shape, neighbour, _bn())
        yield chain("bn", f"before_{variant}", shape, _bn(), neighbour)
    conv: Step = ("Conv2D", {"filters": 3, "kernel_size": 3, "padding": "same"})
    conv_with_relu: Step = ("Conv2D", {"filters": 3, "kernel_size": 3, "activation": "relu"})
    yield chain("bn", "between_convs", _IMAGE, conv, _bn(), relu, conv)
    yield chain("bn", "after_conv_relu", _IMAGE, conv, relu, _bn())
    yield chain("bn", "after_conv_with_activation", _IMAGE, conv_with_relu, _bn())
    yield chain("bn", "twice_after_conv", _IMAGE, conv, _bn(), _bn(scale=False))
    yield chain("bn", "other_axis_after_conv", _IMAGE, conv, _bn(axis=1))
    yield chain("bn", "before_flatten_dense", _IMAGE, _bn(), ("Flatten", {}), ("Dense", {"units": 3}))
    padding: Step = ("ZeroPadding2D", {"padding": 1})
    yield chain("bn", "before_padding_and_conv", _IMAGE, _bn(), padding, conv_with_relu)
    pool: Step = ("MaxPooling2D", {"pool_size": 2})
    yield chain("bn", "after_pool", _IMAGE, conv, pool, _bn(), relu)
    dropout: Step = ("Dropout", {"rate": 0.5})
    yield chain("bn", "after_conv_and_dropout", _IMAGE, conv, dropout, _bn(center=False))


def _batch_normalization_in_a_graph() -> Iterator[Case]:
    def conv_read_twice(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        conv = layer(keras, "Conv2D", filters=4, kernel_size=3, padding="same")(x)
        normal = layer(keras, "BatchNormalization")(conv)
        return keras.Model(x, layer(keras, "Add")([conv, normal]))

    def bn_read_twice(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        normal = layer(keras, "BatchNormalization")(x)
        left = layer(keras, "Conv2D", filters=3, kernel_size=3)(normal)
        right = layer(keras, "Conv2D", filters=2, kernel_size=3)(normal)
        return keras.Model(x, layer(keras, "Concatenate")([left, right]))

    def conv_is_output(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        conv = layer(keras, "Conv2D", filters=4, kernel_size=3)(x)
        return keras.Model(x, [conv, layer(keras, "BatchNormalization")(conv)])

    def after_concatenate(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        branches = [layer(keras, "Conv2D", filters=n, kernel_size=1)(x) for n in (2, 3)]
        merged = layer(keras, "Concatenate")(branches)
        return keras.Model(x, layer(keras, "BatchNormalization")(merged))

    def shared(keras: Keras) -> Model:
        x = keras.Input(_IMAGE)
        normal = layer(keras, "BatchNormalization")
        branches = [normal(layer(keras, "Conv2D", filters=3, kernel_size=k, padding="same")(x)) for k in (1, 3)]
        return keras.Model(x, layer(keras, "Add")(branches))

    def shared_conv(keras: Keras) -> Model:
        left, right = keras.Input(_IMAGE), keras.Input(_IMAGE)
        conv = layer(keras, "Conv2D", filters=3, kernel_size=3)
        return keras.Model([left, right], [layer(keras, "BatchNormalization")(conv(x)) for x in (left, right)])

    yield Case("bn", "conv_read_twice", conv_read_twice)
    yield Case("bn", "read_twice", bn_read_twice)
    yield Case("bn", "conv_is_output", conv_is_output)
    yield Case("bn", "after_concatenate", after_concatenate)
    yield Case("bn", "shared", shared)
    yield Case("bn", "after_shared_conv", shared_conv)


def _layer_normalization() -> Iterator[Case]:
    for variant, shape in (("vector", _VECTOR), ("sequence", _SEQUENCE), ("image", _IMAGE)):
        yield one("layernorm", variant, shape, "LayerNormalization")
    for axis in (1, 2, 3, -2, [-1], [2, 3], [1, 2], [1, 3], [1, 2, 3]):
        listed = "list_" if isinstance(axis, list) else ""
        yield one("layernorm", f"axis_{listed}{tag(axis)}", _IMAGE, "LayerNormalization", axis=axis)
    yield one("layernorm", "no_scale", _SEQUENCE, "LayerNormalization", scale=False)
    yield one("layernorm", "no_center", _SEQUENCE, "LayerNormalization", center=False)
    yield one("layernorm", "no_scale_no_center", _SEQUENCE, "LayerNormalization", scale=False, center=False)
    yield one("layernorm", "epsilon", _SEQUENCE, "LayerNormalization", epsilon=0.1)
    yield chain("layernorm", "after_dense", _VECTOR, ("Dense", {"units": 6}), ("LayerNormalization", {}))


def _preprocessing() -> Iterator[Case]:
    bytes_like = {"samples": 3, "input_spread": 120.0}
    yield replace(one("rescaling", "to_unit", _IMAGE, "Rescaling", scale=1 / 255), **bytes_like)
    yield replace(one("rescaling", "to_signed", _IMAGE, "Rescaling", scale=1 / 127.5, offset=-1.0), **bytes_like)
    conv: Step = ("Conv2D", {"filters": 3, "kernel_size": 3, "padding": "same"})
    rescaled_conv = chain("rescaling", "before_conv", _IMAGE, ("Rescaling", {"scale": 1 / 255, "offset": -0.5}), conv)
    yield replace(rescaled_conv, **bytes_like)
    yield one("rescaling", "by_channel", (4, 4, 3), "Rescaling", scale=[0.1, 0.2, 0.3], offset=[1.0, 0.0, -1.0])
    yield one("normalization", "learnt", _SEQUENCE, "Normalization")
    yield one("normalization", "learnt_axis_1", _SEQUENCE, "Normalization", axis=1)
    yield one("normalization", "learnt_axes", _SEQUENCE, "Normalization", axis=[1, 2])
    yield one("normalization", "learnt_scalar", _SEQUENCE, "Normalization", axis=None)
    given = {"mean": [0.5, -0.5, 1.0, 0.0], "variance": [1.0, 2.0, 0.5, 0.25]}
    yield one("normalization", "given", _SEQUENCE, "Normalization", **given)
    yield one("normalization", "given_scalar", _VECTOR, "Normalization", axis=None, mean=0.3, variance=2.0)
    yield one("normalization", "invert", _SEQUENCE, "Normalization", invert=True, **given)
    yield chain("normalization", "before_dense", (4,), ("Normalization", given), ("Dense", {"units": 3}))
