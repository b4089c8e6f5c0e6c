"""The zoo's recurrent models, written by tf-keras: the Keras 3 layers crash the converter's calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.zoo_tflite.quantization import set_quantization

MODES: dict[str, tuple[str, ...]] = {
    "lstm": ("int8", "int8", "int8", "int8", "int8", "int8", "float"),
    "lstmlast": ("int8", "int8"),
    "lstmback": ("int8",),
    "lstmstack": ("int8",),
    "bilstm": ("int8",),
    "gru": ("int8", "int16"),
    "rnn": ("int8", "int16"),
    "gruloop": ("float",),
    "maskedloop": ("float",),
}


def _layers(layers: Any, kind: str, units: int) -> list[Any]:
    choices: dict[str, Callable[[], list[Any]]] = {
        "lstm": lambda: [layers.LSTM(units, return_sequences=True)],
        "lstmlast": lambda: [layers.LSTM(units)],
        "lstmback": lambda: [layers.LSTM(units, go_backwards=True)],
        "lstmstack": lambda: [layers.LSTM(units, return_sequences=True), layers.LSTM(3), layers.Dense(4)],
        "bilstm": lambda: [layers.Bidirectional(layers.LSTM(units))],
        "gru": lambda: [layers.GRU(units, unroll=True)],
        "rnn": lambda: [layers.SimpleRNN(units, unroll=True)],
        "gruloop": lambda: [layers.GRU(units, return_sequences=True)],
        "maskedloop": lambda: [layers.Masking(), layers.LSTM(units, return_sequences=True)],
    }
    return choices[kind]()


def _model(keras: Any, kind: str, rng: np.random.Generator) -> tuple[Any, tuple[int, int, int]]:
    units = int(rng.integers(3, 17))
    shape = (1, int(rng.integers(3, 6 if kind in ("gru", "rnn") else 9)), int(rng.integers(2, 9)))
    model = keras.Sequential([keras.Input(shape[1:], batch_size=1), *_layers(keras.layers, kind, units)])
    gain = float(rng.choice([1.0, 2.5, 15.0]))  # larger weights saturate the gates
    model.set_weights([w * gain + rng.normal(size=w.shape) * 0.1 for w in model.get_weights()])
    return model, shape


def conversions(tf: Any, seed: int) -> Iterator[tuple[str, str, bytes]]:
    import tf_keras as keras

    keras.utils.set_random_seed(seed)
    for kind, modes in MODES.items():
        for number, mode in enumerate(modes):
            rng = np.random.default_rng([seed, len(kind), number, sum(kind.encode())])
            model, shape = _model(keras, kind, rng)
            converter = tf.lite.TFLiteConverter.from_keras_model(model)
            set_quantization(tf, converter, mode, _calibration(rng, shape))
            yield f"{kind}_{mode}_{number:02d}", mode, bytes(converter.convert())


def _calibration(rng: np.random.Generator, shape: tuple[int, ...]) -> Callable[[], Iterator[list[Any]]]:
    def samples() -> Iterator[list[Any]]:
        for _ in range(8):
            yield [rng.normal(size=shape).astype(np.float32)]

    return samples
