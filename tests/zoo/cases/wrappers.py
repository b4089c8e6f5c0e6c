"""Bidirectional and TimeDistributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.zoo.case import TFKERAS, Builder, Case, Keras, Model, layer, tag
from tests.zoo.cases.recurrent import KINDS, SEQUENCE, STATES

_FRAMES = (3, 6, 5, 2)


def cases() -> Iterator[Case]:
    for kind in KINDS:
        yield from _bidirectional(kind)
    yield Case("bidirectional", "stack", _stack)
    yield Case("bidirectional", "different_kinds", _different_kinds)
    yield from _time_distributed()


def _bidirectional(kind: str) -> Iterator[Case]:
    def case(variant: str, merge_mode: str | None = "concat", /, **options: Any) -> Case:
        def build(keras: Keras) -> Model:
            x = keras.Input(SEQUENCE)
            rnn = layer(keras, kind, **{"units": 4} | options)
            return keras.Model(x, layer(keras, "Bidirectional", layer=rnn, merge_mode=merge_mode)(x))

        return Case(f"bidirectional_{kind.lower()}", variant, build)

    for merge_mode in ("concat", "sum", "mul", "ave", None):
        yield case(f"{tag(merge_mode)}_last", merge_mode)
        yield case(f"{tag(merge_mode)}_sequences", merge_mode, return_sequences=True)
    yield case("return_state", return_state=True)
    yield case("return_both", "sum", return_sequences=True, return_state=True)
    yield case("no_bias", use_bias=False)
    backwards = case("go_backwards", go_backwards=True, return_sequences=True)
    yield replace(backwards, writers=(TFKERAS,))  # Keras 3 turns neither layer round and then refuses the pair
    yield Case(f"bidirectional_{kind.lower()}", "own_backward_layer", _own_backward_layer(kind))
    yield Case(f"bidirectional_{kind.lower()}", "crossed_layers", _crossed_layers(kind))
    yield Case(f"bidirectional_{kind.lower()}", "initial_state", _initial_state(kind))
    yield Case(f"bidirectional_{kind.lower()}", "stateful", _stateful(kind), samples=6, stateful=True)


def _own_backward_layer(kind: str) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(SEQUENCE)
        forward = layer(keras, kind, units=4, return_sequences=True)
        backward = layer(keras, kind, units=3, activation="relu", return_sequences=True, go_backwards=True)
        return keras.Model(x, layer(keras, "Bidirectional", layer=forward, backward_layer=backward)(x))

    return build


def _crossed_layers(kind: str) -> Builder:
    """The layer called forward reads backwards, and the other one forwards."""

    def build(keras: Keras) -> Model:
        x = keras.Input(SEQUENCE)
        forward = layer(keras, kind, units=4, return_sequences=True, go_backwards=True)
        backward = layer(keras, kind, units=4, return_sequences=True)
        return keras.Model(x, layer(keras, "Bidirectional", layer=forward, backward_layer=backward)(x))

    return build


def _initial_state(kind: str) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(SEQUENCE)
        states = [keras.Input((4,)) for _ in range(2 * STATES[kind])]
        rnn = layer(keras, "Bidirectional", layer=layer(keras, kind, units=4, return_sequences=True))
        return keras.Model([x, *states], rnn(x, initial_state=states))

    return build


def _stateful(kind: str) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(batch_shape=(1, *SEQUENCE))
        rnn = layer(keras, kind, units=4, return_sequences=True, stateful=True)
        return keras.Model(x, layer(keras, "Bidirectional", layer=rnn)(x))

    return build


def _different_kinds(keras: Keras) -> Model:
    x = keras.Input(SEQUENCE)
    forward, backward = layer(keras, "LSTM", units=4), layer(keras, "GRU", units=4, go_backwards=True)
    return keras.Model(x, layer(keras, "Bidirectional", layer=forward, backward_layer=backward, merge_mode="sum")(x))


def _stack(keras: Keras) -> Model:
    x = first = keras.Input(SEQUENCE)
    for kind in ("LSTM", "GRU"):
        x = layer(keras, "Bidirectional", layer=layer(keras, kind, units=4, return_sequences=True))(x)
    x = layer(keras, "Bidirectional", layer=layer(keras, "SimpleRNN", units=3))(x)
    return keras.Model(first, layer(keras, "Dense", units=2)(x))


def _time_distributed() -> Iterator[Case]:
    def case(variant: str, shape: tuple[int, ...], class_name: str, /, **config: Any) -> Case:
        def build(keras: Keras) -> Model:
            x = keras.Input(shape)
            return keras.Model(x, layer(keras, "TimeDistributed", layer=layer(keras, class_name, **config))(x))

        return Case("timedistributed", variant, build)

    yield case("dense", SEQUENCE, "Dense", units=3, activation="relu")
    yield case("dense_rank4", (3, 4, 5), "Dense", units=3)
    yield case("conv1d", (3, 8, 2), "Conv1D", filters=3, kernel_size=3, padding="causal")
    yield case("conv2d", _FRAMES, "Conv2D", filters=3, kernel_size=3, padding="same", activation="relu")
    yield case("conv2d_strides", _FRAMES, "Conv2D", filters=3, kernel_size=2, strides=2)
    yield case("depthwise", _FRAMES, "DepthwiseConv2D", kernel_size=3)
    yield case("batch_normalization", _FRAMES, "BatchNormalization")
    yield case("max_pooling", _FRAMES, "MaxPooling2D")
    yield case("average_pooling_same", _FRAMES, "AveragePooling2D", pool_size=2, padding="same")
    yield case("global_pooling", _FRAMES, "GlobalAveragePooling2D")
    yield case("flatten", _FRAMES, "Flatten")
    yield case("reshape", _FRAMES, "Reshape", target_shape=(10, 6))
    yield case("activation", SEQUENCE, "Activation", activation="softmax")
    yield case("dropout", SEQUENCE, "Dropout", rate=0.5)
    yield case("lstm", (3, 5, 4), "LSTM", units=4)
    yield case("gru_sequences", (3, 5, 4), "GRU", units=4, return_sequences=True)
    yield Case("timedistributed", "model", _nested_model)
    yield Case("timedistributed", "sequential", _nested_sequential)
    yield Case("timedistributed", "twice", _twice)
    yield Case("timedistributed", "cnn_lstm", _cnn_lstm)
    yield Case("timedistributed", "bidirectional", _distributed_bidirectional)


def _nested_model(keras: Keras) -> Model:
    frame = keras.Input(_FRAMES[1:])
    y = layer(keras, "Conv2D", filters=3, kernel_size=3)(frame)
    y = layer(keras, "BatchNormalization")(y)
    inner = keras.Model(frame, layer(keras, "GlobalMaxPooling2D")(y))
    x = keras.Input(_FRAMES)
    return keras.Model(x, layer(keras, "TimeDistributed", layer=inner)(x))


def _nested_sequential(keras: Keras) -> Model:
    dense = [layer(keras, "Dense", units=units, activation="relu") for units in (5, 3)]
    inner = keras.Sequential([keras.Input((4,)), *dense])
    x = keras.Input(SEQUENCE)
    return keras.Model(x, layer(keras, "TimeDistributed", layer=inner)(x))


def _twice(keras: Keras) -> Model:
    x = keras.Input((2, 3, 4))
    dense = layer(keras, "TimeDistributed", layer=layer(keras, "Dense", units=5))
    return keras.Model(x, layer(keras, "TimeDistributed", layer=dense)(x))


def _cnn_lstm(keras: Keras) -> Model:
    x = first = keras.Input(_FRAMES)
    for class_name, config in (
        ("Conv2D", {"filters": 4, "kernel_size": 3, "activation": "relu"}),
        ("MaxPooling2D", {"pool_size": 2}),
        ("Flatten", {}),
    ):
        x = layer(keras, "TimeDistributed", layer=layer(keras, class_name, **config))(x)
    x = layer(keras, "LSTM", units=5)(x)
    return keras.Model(first, layer(keras, "Dense", units=3, activation="softmax")(x))


def _distributed_bidirectional(keras: Keras) -> Model:
    x = keras.Input((2, 5, 3))
    rnn = layer(keras, "Bidirectional", layer=layer(keras, "GRU", units=3))
    return keras.Model(x, layer(keras, "TimeDistributed", layer=rnn)(x))
