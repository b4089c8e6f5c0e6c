"""MelSpectrogram against Keras, in numpy and in compiled C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.frontend.fourier import factor
from nnbuild.ops import interpret
from tests.frontend.keras_files import h5_bytes, input_layer, layer, put, sequential
from tests.support.many import run_many

OPTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "power of two": (1000, {"fft_length": 256, "sequence_stride": 128, "num_mel_bins": 20}),
    "short window, magnitudes": (
        700,
        {"fft_length": 240, "sequence_stride": 100, "sequence_length": 200, "window": "hamming", "num_mel_bins": 10}
        | {"sampling_rate": 8000, "mag_exp": 1.0, "ref_power": 2.0, "top_db": 30.0},
    ),
    "powers": (
        300,
        {"fft_length": 64, "sequence_stride": 64, "power_to_db": False, "num_mel_bins": 8, "max_freq": 4000},
    ),
}


@pytest.mark.oracle
def test_like_keras(tmp_path: Path) -> None:
    keras, chance, runs, wanted = pytest.importorskip("keras"), np.random.default_rng(7), [], []
    for size, options in OPTIONS.values():
        x = keras.Input((size,))
        model = keras.Model(x, keras.layers.MelSpectrogram(**options)(x))
        model.save(tmp_path / "model.keras")
        graph = passes.run(load(tmp_path / "model.keras"))
        given = chance.normal(size=(2, size)).astype(np.float32)
        runs.append((graph, {graph.inputs[0]: given}))
        wanted.append(np.concatenate([model.predict(row[None], verbose=0) for row in given]))  # the loudest of each
    for (graph, inputs), by_c, answer in zip(runs, run_many(runs, tmp_path), wanted, strict=True):
        for found in (interpret.run(graph, inputs), by_c):
            np.testing.assert_allclose(found[graph.outputs[0]], answer, atol=1e-5 * np.abs(answer).max())


SPECTROGRAMS: dict[str, dict[str, Any]] = {
    "log": {"frame_length": 64, "frame_step": 40},
    "magnitude": {"mode": "magnitude", "frame_length": 50, "fft_length": 64, "periodic": True, "scaling": None},
    "psd": {"mode": "psd", "frame_length": 64, "window": "hamming", "expand_dims": True, "scaling": "spectrum"},
    "real": {"mode": "real", "frame_length": 32, "frame_step": 20, "padding": "same"},
    "imag": {"mode": "imag", "frame_length": 32},
    "stft": {"mode": "stft", "frame_length": 33, "window": None},
}


@pytest.mark.oracle
def test_spectrograms_like_keras(tmp_path: Path) -> None:
    """The file's kernels are taken, so that nothing of how Keras rounds them is lost."""
    keras, chance, runs, wanted = pytest.importorskip("keras"), np.random.default_rng(8), [], []
    for options in SPECTROGRAMS.values():
        x = keras.Input((300, 1))
        model = keras.Model(x, keras.layers.STFTSpectrogram(**options)(x))
        model.save(tmp_path / "model.keras")
        graph = passes.run(load(tmp_path / "model.keras"))
        given = chance.normal(size=(2, 300, 1)).astype(np.float32)
        runs.append((graph, {graph.inputs[0]: given}))
        wanted.append(model.predict(given, verbose=0))
    for (graph, inputs), by_c, answer in zip(runs, run_many(runs, tmp_path), wanted, strict=True):
        for found in (interpret.run(graph, inputs), by_c):
            got = found[graph.outputs[0]]
            assert got.shape == answer.shape
            np.testing.assert_allclose(got, answer, atol=1e-5 * np.abs(answer).max())


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ([300, 2], {}, r"it needs an input \[time, 1\], not \(300, 2\)\. Give it one channel\."),
        ([100, 1], {}, r"its frames of 256 are longer than its input \(100, 1\)\. Use shorter frames\."),
        ([300, 1], {"mode": "angle"}, r"its option 'mode' is 'angle', which nnbuild does not support\. Use one of log"),
    ],
)
def test_spectrograms_that_are_refused(shape: list[int], options: dict[str, Any], text: str, tmp_path: Path) -> None:
    spec = sequential(input_layer("x", shape), layer("STFTSpectrogram", "stft", **options))
    kernel = np.zeros((256, 1, 129), np.float32)
    weights = {"stft": [kernel, kernel]}
    with pytest.raises(ModelError, match=text):
        load(put(tmp_path / "net.h5", h5_bytes(spec, weights, "3.5.0")))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"fft_length": 1009}, "is not a signal longer than half"),
        ({"fft_length": 2 * 1031, "sequence_stride": 2062}, "too large, or cannot be factored"),
        ({"fft_length": 256, "mag_exp": 3.0}, "raises magnitudes to the power 3"),
        ({"fft_length": 256, "min_freq": 9000.0}, "are empty"),
        ({"fft_length": 1024, "sequence_stride": 3}, "no large part in common"),
    ],
)
def test_what_is_refused(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    size = 400 if options["fft_length"] == 1009 else 4000
    spec = sequential(input_layer("x", [size]), layer("MelSpectrogram", "mel", **options))
    with pytest.raises(ModelError, match=text):
        load(put(tmp_path / "net.h5", h5_bytes(spec, {}, "3.5.0")))


def test_factors() -> None:
    assert [factor(n) for n in (1, 7, 256, 240, 2048)] == [1, 1, 16, 15, 32]
