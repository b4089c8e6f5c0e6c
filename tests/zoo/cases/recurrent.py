"""LSTM, GRU and SimpleRNN with every option that changes the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.zoo.case import Case, Keras, Model, Step, chain, layer, one, tag

KINDS = ("LSTM", "GRU", "SimpleRNN")
SEQUENCE = (6, 4)
STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}

_ACTIVATIONS = ("relu", "sigmoid", "linear", "hard_sigmoid", "softsign")
_RECURRENT_ACTIVATIONS = ("hard_sigmoid", "tanh", "relu")


def cases() -> Iterator[Case]:
    for kind in KINDS:
        yield from _options(kind)
        yield from _stateful(kind)
        yield from _given_state(kind)
        yield from _stacks(kind)
    yield from _gru_resets()
    yield Case("recurrent", "encoder_decoder", _encoder_decoder)
    yield Case("recurrent", "state_goes_on", _state_goes_on)


def _options(kind: str) -> Iterator[Case]:
    def rnn(variant: str, shape: tuple[int, ...] = SEQUENCE, /, **options: Any) -> Case:
        return one(kind.lower(), variant, shape, kind, **{"units": 5} | options)

    yield rnn("default")
    yield rnn("one_step", (1, 4))
    yield rnn("one_feature", (9, 1))
    yield rnn("one_unit", units=1)
    yield rnn("wide", (3, 10), units=19)
    yield rnn("return_sequences", return_sequences=True)
    yield rnn("return_state", return_state=True)
    yield rnn("return_both", return_sequences=True, return_state=True)
    yield rnn("go_backwards", go_backwards=True)
    yield rnn("go_backwards_sequences", go_backwards=True, return_sequences=True)
    yield rnn("go_backwards_both", go_backwards=True, return_sequences=True, return_state=True)
    yield rnn("no_bias", use_bias=False)
    yield rnn("unroll", unroll=True, return_sequences=True)
    yield rnn("dropout", dropout=0.3, recurrent_dropout=0.2)
    for activation in _ACTIVATIONS:
        yield rnn(f"activation_{activation}", activation=activation, return_sequences=True)
    if kind != "SimpleRNN":
        for activation in _RECURRENT_ACTIVATIONS:
            case = rnn(f"recurrent_activation_{activation}", recurrent_activation=activation, return_sequences=True)
            yield replace(case, input_spread=0.3)  # gates without an upper bound make the state explode
        yield rnn("keras1_activations", activation="tanh", recurrent_activation="hard_sigmoid")
        yield rnn("implementation_1", implementation=1)
    if kind == "LSTM":
        yield rnn("no_unit_forget_bias", unit_forget_bias=False)


def _gru_resets() -> Iterator[Case]:
    for after in (False, True):
        for options in (
            {},
            {"use_bias": False},
            {"return_sequences": True},
            {"go_backwards": True, "return_sequences": True},
            {"recurrent_activation": "hard_sigmoid"},
            {"activation": "relu", "recurrent_activation": "tanh"},
        ):
            variant = "_".join(
                ["reset_after" if after else "reset_before", *(f"{k}_{tag(v)}" for k, v in options.items())]
            )
            yield one("gru", variant, SEQUENCE, "GRU", units=5, reset_after=after, **options)


def _stateful(kind: str) -> Iterator[Case]:
    yield stateful_chain(f"{kind.lower()}_stateful", "default", SEQUENCE, 6, _rnn(kind))
    yield stateful_chain(f"{kind.lower()}_stateful", "sequences", SEQUENCE, 6, _rnn(kind, return_sequences=True))
    yield stateful_chain(f"{kind.lower()}_stateful", "state", SEQUENCE, 6, _rnn(kind, return_state=True))
    yield stateful_chain(f"{kind.lower()}_stateful", "backwards", SEQUENCE, 6, _rnn(kind, go_backwards=True))
    yield stateful_chain(f"{kind.lower()}_stateful", "one_step", (1, 4), 12, _rnn(kind))
    yield stateful_chain(f"{kind.lower()}_stateful", "200_steps", (1, 3), 200, _rnn(kind), ("Dense", {"units": 1}))
    stack = (_rnn(kind, return_sequences=True), _rnn(kind), ("Dense", {"units": 2}))
    yield stateful_chain(f"{kind.lower()}_stateful", "stack", (2, 4), 8, *stack)
    if kind == "GRU":
        yield stateful_chain("gru_stateful", "reset_before", SEQUENCE, 6, _rnn(kind, reset_after=False))
    if kind != "SimpleRNN":
        hard = _rnn(kind, recurrent_activation="hard_sigmoid")
        yield stateful_chain(f"{kind.lower()}_stateful", "hard_sigmoid", SEQUENCE, 6, hard)


def _rnn(kind: str, /, **options: Any) -> Step:
    return kind, {"units": 5, "stateful": True} | options


def stateful_chain(category: str, variant: str, shape: tuple[int, ...], calls: int, /, *steps: Step) -> Case:
    """Layers in a row for a batch of one, called `calls` times with the state carried."""

    def build(keras: Keras) -> Model:
        x = first = keras.Input(batch_shape=(1, *shape))
        for class_name, config in steps:
            x = layer(keras, class_name, **config)(x)
        return keras.Model(first, x)

    return Case(category, variant, build, samples=calls, stateful=True)


def _given_state(kind: str) -> Iterator[Case]:
    """The first state is an input of the model."""

    def build_with(**options: Any) -> Any:
        def build(keras: Keras) -> Model:
            x = keras.Input(SEQUENCE)
            states = [keras.Input((5,)) for _ in range(STATES[kind])]
            rnn = layer(keras, kind, units=5, **options)
            return keras.Model([x, *states], rnn(x, initial_state=states))

        return build

    yield Case(kind.lower(), "initial_state", build_with())
    yield Case(kind.lower(), "initial_state_sequences", build_with(return_sequences=True, return_state=True))
    yield Case(kind.lower(), "initial_state_backwards", build_with(go_backwards=True, return_sequences=True))


def _stacks(kind: str) -> Iterator[Case]:
    sequences: Step = (kind, {"units": 4, "return_sequences": True})
    last: Step = (kind, {"units": 3})
    dense: Step = ("Dense", {"units": 2, "activation": "softmax"})
    yield chain(kind.lower(), "stack", SEQUENCE, sequences, sequences, last, dense)
    yield chain(kind.lower(), "dense_each_step", SEQUENCE, sequences, dense)
    yield chain(kind.lower(), "repeated", (5,), ("RepeatVector", {"n": 4}), sequences, last)
    yield chain(kind.lower(), "after_conv", (9, 3), ("Conv1D", {"filters": 4, "kernel_size": 3}), last)
    flatten: Step = ("Flatten", {})
    yield chain(kind.lower(), "batch_normalized", SEQUENCE, ("BatchNormalization", {}), sequences, flatten, dense)
    yield replace(chain(kind.lower(), "large_inputs", SEQUENCE, sequences, last), input_spread=8.0)


def _encoder_decoder(keras: Keras) -> Model:
    source, target = keras.Input((6, 4)), keras.Input((3, 2))
    _, hidden, carry = layer(keras, "LSTM", units=5, return_state=True)(source)
    decoded = layer(keras, "LSTM", units=5, return_sequences=True)(target, initial_state=[hidden, carry])
    return keras.Model([source, target], layer(keras, "Dense", units=2, activation="softmax")(decoded))


def _state_goes_on(keras: Keras) -> Model:
    x = keras.Input((6, 4))
    sequence, state = layer(keras, "GRU", units=5, return_sequences=True, return_state=True)(x)
    gate = layer(keras, "Dense", units=5, activation="sigmoid")(state)
    return keras.Model(x, [layer(keras, "Multiply")([sequence, gate]), state])
