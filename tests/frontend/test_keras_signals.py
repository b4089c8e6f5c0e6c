"""Fourier transforms and frames of Keras' operations, compared with Keras, in floats and in integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from tests.frontend.keras_oracle import expect_integers, expect_same

pytestmark = pytest.mark.oracle

Build = Callable[[Any, Any], Any]
WINDOW = np.linspace(0.125, 1.5, 12).tolist()
CASES: dict[str, tuple[tuple[int, ...], Build]] = {
    "rfft": ((3, 12), lambda K, x: K.rfft(x)),
    "rfft of odd length": ((15,), lambda K, x: K.rfft(x)),
    "rfft of a part": ((2, 20), lambda K, x: K.rfft(x, fft_length=9)),
    "rfft with zeros": ((2, 9), lambda K, x: K.rfft(x, fft_length=16)),
    "rfft by factors": ((2, 360), lambda K, x: K.rfft(x)),
    "fft": ((3, 10), lambda K, x: K.fft((x, x * x))),
    "fft by factors": ((210,), lambda K, x: K.fft((x, x * x))),
    "fft2": ((2, 6, 5), lambda K, x: K.fft2((x, x * x))),
    "ifft2": ((6, 5), lambda K, x: K.ifft2((x, x * x))),
    "irfft": ((3, 9), lambda K, x: K.irfft((x, x * x))),
    "irfft of odd length": ((3, 8), lambda K, x: K.irfft((x, x * x), fft_length=15)),
    "irfft of a part": ((3, 9), lambda K, x: K.irfft((x, x * x), fft_length=10)),
    "irfft by factors": ((181,), lambda K, x: K.irfft((x, x * x))),
    "irfft by odd factors": ((180,), lambda K, x: K.irfft((x, x * x), fft_length=357)),
    "stft": ((2, 70), lambda K, x: K.stft(x, 12, 5, 16)),
    "stft from the beginning": ((70,), lambda K, x: K.stft(x, 12, 5, 17, window="hamming", center=False)),
    "stft of a window": ((70,), lambda K, x: K.stft(x, 12, 5, 16, window=WINDOW)),
    "stft without a window": ((70,), lambda K, x: K.stft(x, 12, 4, 16, window=None)),
    "stft of long frames": ((1500,), lambda K, x: K.stft(x, 800, 400, 1000)),
    "istft": ((3, 6, 9), lambda K, x: K.istft((x, x * x), 12, 5, 16)),
    "istft of a length": ((6, 9), lambda K, x: K.istft((x, x * x), 16, 4, 16, length=25)),
    "istft without a window": ((6, 9), lambda K, x: K.istft((x, x * x), 12, 5, 16, window=None, center=False)),
    "there and back": ((96,), lambda K, x: K.istft(K.stft(x, 16, 4, 16), 16, 4, 16)),
    "extract_sequences": ((2, 23), lambda K, x: K.extract_sequences(x, 6, 4)),
}
REFUSED: dict[str, tuple[tuple[int, ...], Build, str]] = {
    "a long prime": ((4099,), lambda K, x: K.rfft(x), "of 4099 points cannot be divided. Use a length"),
    "gaps": ((6, 9), lambda K, x: K.istft((x, x), 16, 16, 16), "16 apart, leave gaps"),
    "other bins": ((6, 8), lambda K, x: K.istft((x, x), 16, 4, 16), r"adds up \(6, 8\) of transforms of 16"),
}


def model(keras: Any, shape: tuple[int, ...], build: Build) -> Any:
    x = keras.Input(shape, name="x")
    return keras.Model(x, build(keras.ops, x))


def signal(shape: tuple[int, ...], count: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(count, *shape)).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_signals_are_as_keras_makes_them(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    shape, build = CASES[case]
    expect_same(model(keras, shape, build), tmp_path, signal(shape, 2), atol=1e-4 * max(1, shape[-1] / 50))


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    shape, build, cause = REFUSED[case]
    model(keras, shape, build).save(tmp_path / "model.keras")
    with pytest.raises(ModelError, match=cause):
        load(tmp_path / "model.keras")


@pytest.mark.slow
def test_integers_of_the_c(tmp_path: Path) -> None:
    """A front end of magnitudes, and a signal that comes back."""
    keras = pytest.importorskip("keras")

    def build(ops: Any, x: Any) -> Any:
        real, imaginary = ops.stft(x, 16, 8, 16)
        louder = ops.istft((real * 2.0, imaginary * 2.0), 16, 8, 16)
        return [ops.sqrt(ops.square(real) + ops.square(imaginary) + 1e-3), louder, ops.rfft(x, fft_length=30)[0]]

    path = tmp_path / "model.keras"
    model(keras, (96,), build).save(path)
    expect_integers(path, {"x": signal((96,), 16)}, tmp_path, (0.02, 1e-4))
