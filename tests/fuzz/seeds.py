"""The sound models that the importer's fuzzer spoils: each family of layers, each spelling of the wiring."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontend.keras_files import called, dense, functional, input_layer, layer, random_arrays, sequential

Seed = tuple[dict[str, Any], dict[str, list[np.ndarray]]]


def conv_net() -> Seed:
    config = sequential(
        input_layer("image", [12, 10, 3]),
        layer("ZeroPadding2D", "pad", padding=[[1, 2], [0, 1]], data_format="channels_last"),
        layer("Conv2D", "conv", filters=4, kernel_size=[3, 3], strides=[2, 1], padding="valid", activation="relu"),
        layer("BatchNormalization", "bn", axis=[3], epsilon=0.001, center=True, scale=True),
        layer("DepthwiseConv2D", "dw", kernel_size=[3, 2], depth_multiplier=2, padding="same", activation="relu6"),
        layer("SeparableConv2D", "sep", filters=3, kernel_size=[2, 2], padding="same", activation="swish"),
        layer("MaxPooling2D", "pool", pool_size=[2, 2], strides=[2, 2], padding="valid"),
        layer("UpSampling2D", "up", size=[2, 1], interpolation="bilinear"),
        layer("Cropping2D", "crop", cropping=[[1, 0], [0, 1]]),
        layer("Conv2DTranspose", "back", filters=2, kernel_size=[3, 3], strides=[2, 2], padding="same"),
        layer("PReLU", "prelu", shared_axes=[1, 2]),
        layer("LayerNormalization", "ln", axis=[-1], epsilon=0.001),
        layer("Permute", "turn", dims=[2, 1, 3]),
        layer("GlobalAveragePooling2D", "mean", keepdims=False),
        layer("Dropout", "drop", rate=0.5),
        dense("out", 3, activation="softmax"),
    )
    positive = [np.ones(4, np.float32)] * 4
    weights = {
        "conv": random_arrays((3, 3, 3, 4), (4,)),
        "bn": positive,
        "dw": random_arrays((3, 2, 4, 2), (8,)),
        "sep": random_arrays((2, 2, 8, 1), (1, 1, 8, 3), (3,)),
        "back": random_arrays((3, 3, 2, 3), (2,)),
        "prelu": random_arrays((1, 1, 2)),
        "ln": random_arrays((2,), (2,)),
        "out": random_arrays((2, 3), (3,)),
    }
    return config, weights


def named_net() -> Seed:
    """So many layers, one with a name that is not ASCII, that HDF5 stores the group of them in a heap."""
    names = ["größe", *(f"dense_{number}" for number in range(9))]
    config = sequential(input_layer("x", [2]), *(dense(name, 2) for name in names))
    return config, {name: random_arrays((2, 2), (2,)) for name in names}


def recurrent_net() -> Seed:
    lstm = {"units": 3, "activation": "tanh", "recurrent_activation": "hard_sigmoid", "return_sequences": True}
    config = sequential(
        input_layer("steps", [6, 4]),
        layer("Conv1D", "conv", filters=4, kernel_size=[3], padding="causal", dilation_rate=[2]),
        layer("Bidirectional", "both", layer=layer("LSTM", "lstm", **lstm), merge_mode="concat"),
        layer("TimeDistributed", "each", layer=dense("inner", 4, activation="elu")),
        layer("GRU", "gru", units=2, reset_after=True, return_sequences=True, stateful=True, go_backwards=True),
        layer("SimpleRNN", "rnn", units=3, activation="relu"),
        layer("RepeatVector", "again", n=2),
        layer("Reshape", "shape", target_shape=[-1, 2]),
        layer("Flatten", "flat"),
        layer("LeakyReLU", "leaky", alpha=0.1),
    )
    one = [(4, 12), (3, 12), (12,)]
    weights = {
        "conv": random_arrays((3, 4, 4), (4,)),
        "both": random_arrays(*one, *one),
        "each": random_arrays((6, 4), (4,)),
        "gru": random_arrays((4, 6), (2, 6), (2, 6)),
        "rnn": random_arrays((2, 3), (3, 3), (3,)),
    }
    return config, weights


def cells_net() -> Seed:
    """Cells within a layer, and numbers that name classes."""
    cells = [layer("LSTMCell", "a", units=3), layer("GRUCell", "b", units=2, reset_after=True)]
    stacked = layer("StackedRNNCells", "cells", cells=cells)
    config = sequential(
        input_layer("steps", [5, 3]),
        layer("RNN", "rnn", cell=stacked, return_sequences=True, go_backwards=True),
        layer("Bidirectional", "both", layer=layer("RNN", "inner", cell=layer("SimpleRNNCell", "c", units=2))),
        layer("Discretization", "bounds", bin_boundaries=[-0.5, 0.0, 0.25], output_mode="int"),
        layer("CategoryEncoding", "classes", num_tokens=4, output_mode="count"),
        dense("out", 2, activation="celu"),
    )
    one = [(2, 2), (2, 2), (2,)]
    weights = {
        "rnn": random_arrays((3, 12), (3, 12), (12,), (3, 6), (2, 6), (2, 6)),
        "both": random_arrays(*one, *one),
        "out": random_arrays((4, 2), (2,)),
    }
    return config, weights


def wired_net() -> Seed:
    """Shared and nested layers, several inputs and outputs, and single TensorFlow operations."""
    inner = sequential(input_layer("i", [4]), dense("d", 4), name="inner")
    shared = {**called(dense("shared", 4), "a"), "inbound_nodes": [[["a", 0, 0, {}]], [["b", 0, 0, {}]]]}

    def operation(name: str, function: str, source: str, **named: Any) -> dict[str, Any]:
        spec = layer("TFOpLambda", name, function=function)
        return {**spec, "name": name, "inbound_nodes": [[source, 0, 0, named]]}

    layers = [
        called(input_layer("a", [4])),
        called(input_layer("b", [4])),
        shared,
        called(layer("Add", "add"), ["shared", 0, 0], ["shared", 1, 0]),
        called({**inner, "config": {**inner["config"], "name": "inner"}}, "add"),
        operation("twice", "math.multiply", "add", y=2.0),
        operation("plus", "__operators__.add", "twice", y=["inner", 1, 0]),
        operation("part", "__operators__.getitem", "plus", slice_spec=[{"start": None}, {"start": 1, "stop": 3}]),
        called(layer("Concatenate", "join", axis=-1), "part", "plus"),
        called(layer("Average", "middle"), "plus", "twice"),
    ]
    config = functional(layers, ["a", "b"], ["join", "middle", ["shared", 1, 0]])
    return config, {"shared": random_arrays((4, 4), (4,)), "inner": random_arrays((4, 4), (4,))}


def keras3_net() -> Seed:
    """Keras 3's way of wiring, with operation layers."""

    def tensor(name: str) -> dict[str, Any]:
        return {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "keras_history": [name, 0, 0]}}

    def node(*arguments: Any, **named: Any) -> list[Any]:
        return [{"args": list(arguments), "kwargs": named}]

    def operation(class_name: str, name: str, nodes: list[Any], **options: Any) -> dict[str, Any]:
        module = {"module": "keras.src.ops.numpy", "config": {"name": name, **options}}
        return {"class_name": class_name, "name": name, "inbound_nodes": nodes, **module}

    first = layer("InputLayer", "x", batch_shape=[None, 4])
    whole = {"class_name": "__slice__", "config": {"start": None, "stop": None, "step": None}}
    layers = [
        {**first, "name": "x", "inbound_nodes": []},
        {**dense("dense", 4, activation="gelu"), "name": "dense", "inbound_nodes": node(tensor("x"))},
        operation("Add", "plus", node(tensor("dense"), 2.0)),
        operation("Multiply", "times", node(tensor("plus"), {"class_name": "__tensor__", "config": {"value": [1.5]}})),
        operation("Mean", "mean", node(tensor("times")), axis=[-1], keepdims=True),
        operation("GetItem", "get", node(tensor("times"), [whole, {**whole, "config": {"start": 1, "stop": 3}}])),
        {**dense("out", 2), "name": "out", "inbound_nodes": node(tensor("get"))},
    ]
    ends = {"input_layers": ["x", 0, 0], "output_layers": [["out", 0, 0], ["mean", 0, 0]]}
    config = {"class_name": "Functional", "config": {"name": "model", "layers": layers, **ends}}
    return config, {"dense": random_arrays((4, 4), (4,)), "out": random_arrays((2, 2), (2,))}


H5_SEEDS = {
    "conv": (conv_net, "2.15.0"),
    "recurrent": (recurrent_net, "2.4.0"),
    "cells": (cells_net, "2.15.0"),
    "wired": (wired_net, "2.12.0"),
    "named": (named_net, "2.15.0"),
}
KERAS_SEEDS = {"keras3": (keras3_net, "3.5.0")}
