"""Spectrograms, mel bands and cepstra: the C against the reference in every bit, the reference against TensorFlow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.features.config import KINDS, recipe_of
from nnbuild.features.float_fft import real_transform
from nnbuild.features.frontend import Array
from nnbuild.features.spectral import logarithm
from nnbuild.features.spectral_config import LOG_MEL, MFCC, SPECTROGRAM
from nnbuild.features.spectral_frontend import SpectralFrontEnd
from nnbuild.features.spectral_tables import Spectral, bands, window
from nnbuild.features.wav import made_up
from tests.features.compiled import built, fed

CASES = {
    "kws": Spectral(**MFCC["mlperf_kws"]),
    "street_word": Spectral(**LOG_MEL["mlperf_str_ww"]),
    "edge": Spectral(**LOG_MEL["edge_impulse_mfe"]),
    "spectrum": Spectral(**SPECTROGRAM["keras"]),
    "centred": Spectral(window=401, step=160, fft=512, centred=True, bands=64, least=1e-10, logarithm="db"),
    "narrow": Spectral(
        rate=8000, window=128, step=200, bands=20, scale="slaney", least=1e-9, coefficients=7, dct="ortho"
    ),
}
WIDE = Spectral(**LOG_MEL["librosa"])


@pytest.mark.parametrize("name", CASES)
def test_c_equals_the_reference(name: str, tmp_path: Path) -> None:
    front_end = SpectralFrontEnd(CASES[name])
    library = built(front_end, tmp_path)
    for part, samples in enumerate(made_up(front_end.framing, 0.4)):
        found = fed(library, front_end, samples, np.random.default_rng(part))
        np.testing.assert_array_equal(found.view(np.uint32), front_end.rows(samples).view(np.uint32))


@pytest.mark.parametrize("points", [8, 16, 128, 1024])
def test_transform_is_that_of_double_precision(points: int) -> None:
    x = np.random.default_rng(points).normal(size=(20, points)).astype(np.float32)
    re, im = real_transform(x)
    right = np.fft.rfft(x.astype(np.float64))
    assert np.abs(re + 1j * im - right).max() < 2.5e-7 * np.abs(right).max()
    assert (im[:, [0, -1]] == 0).all()


def test_every_preset_is_there(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    for kind, each in KINDS.items():
        for preset in each.presets:
            path.write_text(f'[features]\nkind = "{kind}"\npreset = "{preset}"\n')
            recipe = recipe_of(path)
            assert 0 < recipe.scale <= 1 and recipe.front_end.row[1] > 0
    path.write_text('[features]\nkind = "log_mel"\nscale = "slaney"\n')
    assert recipe_of(path).scale == 1


def test_logarithm_is_that_of_the_library() -> None:
    x = np.random.default_rng(0).integers(1, 0x7F800000, 100_000).astype(np.uint32).view(np.float32)
    exact = np.log(x.astype(np.float64))
    assert (np.abs(logarithm(x) - exact) <= np.spacing(np.abs(exact).astype(np.float32))).all()


def by_hand(s: Spectral, samples: Array) -> Array:
    """Power spectra in double precision."""
    x = samples.astype(np.float64)
    x = np.concatenate([x[:1], x[1:] - s.emphasis * x[:-1]]) / 32768
    turns = np.arange(s.window) / (s.window if s.periodic else s.window - 1)
    share = {"hann": 0.5, "hamming": 0.54}[s.shape]
    weights = share - (1 - share) * np.cos(2 * np.pi * turns)
    count = (len(x) - s.window) // s.step + 1
    each = np.stack([x[i * s.step : i * s.step + s.window] * weights for i in range(count)])
    return np.asarray(np.abs(np.fft.rfft(each, s.points)) ** 2)


@pytest.mark.parametrize("name", ["kws", "street_word"])
def test_spectrum_is_that_of_double_precision(name: str) -> None:
    s = replace(CASES[name], bands=0, coefficients=0, logarithm="none", of="power", times=1.0, add=0.0, multiply=1.0)
    front_end = SpectralFrontEnd(replace(s, minimum=-1e30, maximum=1e30, single=False))
    for samples in made_up(front_end.framing, 0.5):
        right = by_hand(s, samples)
        largest = np.maximum(right.max(axis=1, keepdims=True), 1e-30)
        assert (np.abs(front_end.rows(samples) - right) / largest).max() < 1e-6


@pytest.mark.oracle
def test_quantized_features_are_those_of_tensorflow() -> None:
    """Of 10,000 at most one differs, by 1."""
    tf = pytest.importorskip("tensorflow")
    kws, word = SpectralFrontEnd(CASES["kws"]), SpectralFrontEnd(CASES["street_word"])
    differ = []

    def hamming(size: int, dtype: object) -> object:
        return tf.signal.hamming_window(size, periodic=False, dtype=dtype)

    for samples in made_up(kws.framing, 2.0):
        x = samples.astype(np.float32) / 32768
        weights = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 4000.0)
        sums = tf.tensordot(tf.abs(tf.signal.stft(x, 480, 320, 512)), weights, 1)
        found = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(sums + 1e-6))[..., :10].numpy()
        differ.append(np.floor(found / 0.5847 + 83.5) - np.floor(kws.rows(samples) / 0.5847 + 83.5))
        y = np.concatenate([x[:1], x[1:] - np.float32(0.96875) * x[:-1]])
        power = tf.abs(tf.signal.stft(y, 1024, 512, 1024, hamming)) ** 2 / 1024
        sums = tf.tensordot(power, tf.signal.linear_to_mel_weight_matrix(40, 513, 16000, 0.0, 8000.0), 1).numpy()
        right = np.clip((10 * np.log10(np.maximum(sums, 1e-30)) + 52) / 64, 0, 1)
        step = np.float32(0.0037010426)
        differ.append(np.trunc(right / step - 128) - np.trunc(word.rows(samples) / step - 128))
    steps = np.concatenate([each.reshape(-1) for each in differ])
    assert len(steps) > 15_000
    assert np.abs(steps).max() <= 1
    assert np.count_nonzero(steps) <= len(steps) / 10_000


@pytest.mark.oracle
def test_windows_and_transforms_have_the_bits_of_tensorflow() -> None:
    """On a PC without fused products; single weights hang on its C library's logarithm of the ends."""
    tf = pytest.importorskip("tensorflow")
    for size, shape, periodic in ((480, "hann", True), (1024, "hamming", False), (401, "hann", True)):
        made = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}[shape](size, periodic=periodic)
        ours = window(Spectral(window=size, shape=shape, periodic=periodic, single=True, gain=1.0))[:size]
        np.testing.assert_array_equal(ours.astype(np.float32), made.numpy())
    for points in (32, 256, 512, 2048):
        x = np.random.default_rng(points).normal(size=(9, points)).astype(np.float32)
        right, (re, im) = tf.signal.rfft(x).numpy(), real_transform(x)
        np.testing.assert_array_equal(re, right.real)
        np.testing.assert_array_equal(im, right.imag)
    weights = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 4000.0).numpy()
    ours = bands(Spectral(**LOG_MEL["tf"])).T
    assert np.abs(ours - weights).max() < 1e-6
    assert np.count_nonzero(ours.astype(np.float32) != weights) < 0.005 * weights.size


@pytest.mark.oracle
def test_bands_with_weights_of_a_file_are_those_of_tensorflow(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    weights = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 4000.0).numpy()
    np.save(tmp_path / "mel.npy", weights)
    path = tmp_path / "f.toml"
    path.write_text('[features]\nkind = "log_mel"\nlogarithm = "none"\nweights = "mel.npy"\n')
    front_end = recipe_of(path).front_end
    for samples in made_up(front_end.framing, 1.0):
        bins = tf.abs(tf.signal.stft(samples.astype(np.float32) / 32768, 480, 320, 512))
        right = tf.tensordot(bins, weights, 1).numpy()
        largest = np.maximum(right.max(axis=1, keepdims=True), 1e-30)
        assert (np.abs(front_end.rows(samples) - right) / largest).max() < 1e-6


@pytest.mark.oracle
def test_spectrogram_is_that_of_the_keras_layer() -> None:
    keras = pytest.importorskip("keras")
    layer = keras.layers.STFTSpectrogram(mode="psd", frame_length=256, frame_step=128, fft_length=256)
    front_end = SpectralFrontEnd(Spectral(**SPECTROGRAM["keras_psd"]))
    for samples in list(made_up(front_end.framing, 0.5))[:4]:
        right = np.array(layer((samples.astype(np.float32) / 32768)[None, :, None]))[0].reshape(-1, 129)
        found = front_end.rows(samples)
        assert (np.abs(found - right) / right.max(axis=1, keepdims=True)).max() < 1e-4


def test_wide_bands_have_no_gaps() -> None:
    bands = SpectralFrontEnd(WIDE).tables.bands
    assert len(bands.first) == 128
    assert (bands.width > 0).all()
