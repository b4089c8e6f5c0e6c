"""Front ends of tf.signal in a `.tflite` file, as TensorFlow's converter writes them, against TFLite's reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

import nnbuild
from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.streaming.options import StreamOptions
from nnbuild.streaming.stream import streamed
from tests.frontend.test_tflite_zoo import reference, wrong
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.fuzz.tflite_selection_seeds import plain
from tests.fuzz.tflite_spectrum_seeds import spectrum, transformed
from tests.support.compiled import run_graph

SIZE, FRAME, STEP, POINTS, BANDS = 1600, 320, 160, 512, 20


def sounds(count: int) -> Array:
    chance, time = np.random.default_rng(4), np.arange(SIZE) / 8000
    tones = chance.uniform(100, 3500, (count, 3, 1)) * 2 * np.pi
    loud = chance.uniform(0.01, 0.4, (count, 3, 1))
    return np.asarray((loud * np.sin(tones * time)).sum(1) + chance.normal(size=(count, SIZE)) * 0.02, np.float32)


def spectra(tf: Any, x: Any) -> Any:
    return tf.signal.stft(x, FRAME, STEP, POINTS)


def log_mel(tf: Any, x: Any) -> Any:
    bands = tf.signal.linear_to_mel_weight_matrix(BANDS, POINTS // 2 + 1, 8000, 20.0, 3800.0)
    return tf.math.log(tf.matmul(tf.abs(spectra(tf, x)), bands) + 1e-3)


def power(tf: Any, x: Any) -> Any:
    found = tf.signal.stft(x, 64, 32, pad_end=True)
    return tf.square(tf.math.real(found)) + tf.square(tf.math.imag(found))


def parts(tf: Any, x: Any) -> Any:
    turned = spectra(tf, x) * tf.constant(0.5 - 1.5j, tf.complex64)
    return tf.concat([tf.math.real(turned), tf.math.imag(turned)], -1)


def squares_of_casts(tf: Any, x: Any) -> Any:
    """A cast takes the real parts."""
    return tf.square(tf.cast(spectra(tf, x), tf.float32))


def converted(tf: Any, function: Callable[[Any, Any], Any], path: Path, shape: tuple[int, ...] = (1, SIZE)) -> Graph:
    traced = tf.function(lambda x: function(tf, x), input_signature=[tf.TensorSpec(shape, tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced.get_concrete_function()], tf.Module())
    path.write_bytes(converter.convert())
    return passes.run(load(path))


def expect_same(graph: Graph, path: Path, given: Array, folder: Path) -> None:
    (wanted,) = reference(path, [[row] for row in given])
    inputs = {graph.inputs[0]: given.reshape(-1, *graph.tensors[graph.inputs[0]].shape)}
    for found in (interpret.run(graph, inputs), run_graph(graph, inputs, folder)):
        assert wrong(found[graph.outputs[0]], wanted) == 0


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("function", [log_mel, power, parts, squares_of_casts])
@pytest.mark.parametrize("shape", [(1, SIZE), (SIZE,)])
def test_tf_signal(function: Callable[[Any, Any], Any], shape: tuple[int, ...], tmp_path: Path) -> None:
    """Also of sound without a batch axis, as published networks take it."""
    tf, path = pytest.importorskip("tensorflow"), tmp_path / "front.tflite"
    expect_same(converted(tf, function, path, shape), path, sounds(3), tmp_path)


@pytest.mark.oracle
@pytest.mark.slow
def test_mel_spectrograms_of_keras(tmp_path: Path) -> None:
    """With the batch open, as the default call leaves it: frames are counted by operators."""
    tf, keras, path = pytest.importorskip("tensorflow"), pytest.importorskip("keras"), tmp_path / "front.tflite"
    x = keras.Input((SIZE,))
    y = keras.layers.MelSpectrogram(fft_length=256, sequence_stride=128, sampling_rate=8000, num_mel_bins=16)(x)
    model = keras.Model(x, keras.layers.Dense(3, activation="log_softmax")(keras.layers.Flatten()(y)))
    path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    expect_same(passes.run(load(path)), path, sounds(3), tmp_path)


@pytest.mark.turns(3)
@pytest.mark.oracle
@pytest.mark.slow
def test_integers_and_steps(tmp_path: Path) -> None:
    tf, path, x = pytest.importorskip("tensorflow"), tmp_path / "front.tflite", sounds(8)
    graph = converted(tf, log_mel, path)
    inputs = {graph.inputs[0]: x.reshape(-1, *graph.tensors[graph.inputs[0]].shape)}
    wanted = interpret.run(graph, inputs)[graph.outputs[0]]
    for dtype, most in (("int8", 1.5), ("int16", 0.05)):
        network = nnbuild.compile(path, quantize=dtype, calibrate=inputs)
        (found,) = network.run(inputs).values()
        assert np.sqrt(np.mean((found.reshape(wanted.shape) - wanted) ** 2)) < most
    steps = streamed(graph, StreamOptions(0, 1))  # of one row of samples
    assert steps.macs < steps.window_macs / 8, (steps.macs, steps.window_macs)


# What cannot be.


def ended(kind: str, out: T) -> File:
    """A transform and another operator of its result."""
    file = transformed((1, 2, 8), (2, 8))
    return replace(file, tensors=[*file.tensors[:3], out], operators=[file.operators[0], O(kind, [2], [3])])


BINS = (1, 2, 5)
REFUSED = {
    "complex outputs": (
        replace(transformed((1, 2, 8), (2, 8)), outputs=[2]),
        "tensor 's': it is an output of complex numbers. End the model with tf.abs, or with tf.math.real and",
    ),
    "complex inputs": (
        File([spectrum("s", BINS), plain("out", BINS, "float32")], [O("COMPLEX_ABS", [0], [1])], [0], [1]),
        "it is computed as COMPLEX64, which nnbuild does not support",
    ),
    "another operator": (
        ended("SIN", spectrum("out", BINS)),
        "it works on complex numbers, of which nnbuild computes products, magnitudes and parts. Take tf.abs, tf",
    ),
    "no points": (
        transformed((1, 2, 8), (2, 8)).with_tensor(1, data=np.array([2, 0], np.int32)),
        "its transforms have 2 and 0 points. nnbuild computes 1 to 65,536.",
    ),
    "one length": (
        transformed((1, 2, 8), (2, 8)).with_tensor(1, shape=(1,), data=np.array([8], np.int32)),
        "it transforms [1, 2, 8] by [8] points.",
    ),
    "a large prime": (transformed((1, 1, 8009), (1, 8009)), "its transform of 8009 points has no factors. Use a power"),
    "damaged numbers": (
        replace(
            transformed((1, 2, 8), (2, 8)),
            tensors=[*transformed((1, 2, 8), (2, 8)).tensors, spectrum("k", (5,), np.zeros(9, np.float32))],
            operators=[*transformed((1, 2, 8), (2, 8)).operators, O("MUL", [2, 4], [2], "MulOptions")],
        ),
        "it holds 36 bytes, which is not the size of complex [5].",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_named(name: str, tmp_path: Path) -> None:
    file, cause = REFUSED[name]
    path = tmp_path / "net.tflite"
    path.write_bytes(to_bytes(file))
    with pytest.raises(ModelError) as caught:
        load(path)
    assert cause in str(caught.value)
