#!/usr/bin/env python3
"""How close front ends in floats are to those they are called after: python benchmarks/closeness.py

The largest difference of powers or magnitudes, as a share of the largest of their frame, and how many of the features
differ once they are quantized to int8. What is not installed here is left out by name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.features.spectral_config import LOG_MEL, MFCC, SPECTROGRAM
from nnbuild.features.spectral_frontend import SpectralFrontEnd
from nnbuild.features.spectral_tables import Spectral
from nnbuild.features.wav import made_up

SECONDS = 4.0
Rows = tuple[SpectralFrontEnd, Callable[[Any], Any]]


def plain(settings: Any, **more: Any) -> SpectralFrontEnd:
    """The sums of bands as they are: logarithms would hide what is small, and show what is next to nothing."""
    bare = {"logarithm": "none", "least": 0.0, "more": 0.0, "add": 0.0, "multiply": 1.0, "coefficients": 0}
    wide = {"minimum": -1e30, "maximum": 1e30}
    return SpectralFrontEnd(replace(Spectral(**settings), **bare, **wide, **more))


def of_tensorflow(tf: Any) -> Iterator[tuple[str, Rows]]:
    matrix = tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 4000.0).numpy()

    def bands(x: Any) -> Any:
        return tf.tensordot(tf.abs(tf.signal.stft(x, 480, 320, 512)), matrix, 1).numpy()

    def spectrum(x: Any) -> Any:
        return tf.abs(tf.signal.stft(x, 480, 320, 512)).numpy()

    def cepstra(x: Any) -> Any:
        return tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(bands(x) + 1e-6))[..., :10].numpy()

    yield "tf.signal.stft, 480/320", (SpectralFrontEnd(Spectral(**SPECTROGRAM["tf"])), spectrum)
    trained = tuple(tuple(map(float, row)) for row in matrix.T)
    yield "tf.signal, mel bands", (plain(LOG_MEL["tf"]), bands)
    yield "tf.signal, mel bands, `weights` as trained", (plain(LOG_MEL["tf"], matrix=trained), bands)
    kws = Spectral(**MFCC["mlperf_kws"], matrix=trained)
    yield "tf.signal, MFCC of MLPerf, `weights` as trained", (SpectralFrontEnd(kws), cepstra)


def of_keras(keras: Any) -> Iterator[tuple[str, Rows]]:
    psd = keras.layers.STFTSpectrogram(mode="psd", frame_length=256, frame_step=128, fft_length=256)
    mel = keras.layers.MelSpectrogram(power_to_db=False, min_freq=20.0, max_freq=8000.0)

    def powers(x: Any) -> Any:
        return np.array(psd(x[None, :, None]))[0].reshape(-1, 129)

    def inner(x: Any) -> Any:
        """Without the rows that reflect the clip's ends."""
        return np.array(mel(x[None]))[0].T[2:-2]

    yield "Keras STFTSpectrogram, psd", (SpectralFrontEnd(Spectral(**SPECTROGRAM["keras_psd"])), powers)
    yield "Keras MelSpectrogram", (plain(LOG_MEL["keras"]), inner)


def of_librosa(librosa: Any) -> Iterator[tuple[str, Rows]]:
    def bands(x: Any) -> Any:
        return librosa.feature.melspectrogram(y=x, sr=22050, n_fft=2048, hop_length=512, center=False).T

    yield "librosa melspectrogram", (plain(LOG_MEL["librosa"]), bands)


def compared(front_end: SpectralFrontEnd, theirs: Callable[[Any], Any]) -> tuple[float, int, int]:
    largest, differ, count = 0.0, 0, 0
    for samples in made_up(front_end.framing, SECONDS):
        x = samples.astype(np.float32) / 32768
        right = np.asarray(theirs(x), np.float64)
        found = front_end.rows(samples).astype(np.float64)[: len(right)]
        right = right[: len(found)]
        top = np.abs(right).max(axis=1, keepdims=True)
        heard = top[:, 0] > 1e-6 * top.max()
        largest = max(largest, float((np.abs(found - right) / np.maximum(top, 1e-30))[heard].max(initial=0.0)))
        step = max(np.ptp(right), 1e-30) / 255
        quantized = [np.floor((each - right.min()) / step + 0.5) for each in (found, right)]
        differ += int((quantized[0] != quantized[1]).sum())
        count += right.size
    return largest, differ, count


def main() -> int:
    bars = {"tensorflow": (of_tensorflow, 1e-6), "keras": (of_keras, 1e-5), "librosa": (of_librosa, 1e-5)}
    missed = 0
    for package, (cases, most) in bars.items():
        try:
            there = importlib.import_module(package)
        except ImportError:
            print(f"{package}: not installed here")
            continue
        for name, (front_end, theirs) in cases(there):
            largest, differ, count = compared(front_end, theirs)
            passed = largest <= most and differ * 10_000 <= count
            missed += not passed
            told = f"{largest:9.1e} of at most {most:.0e}   int8: {differ:>4} of {count:>9,} differ"
            print(f"{name:<46} {told}   {'PASS' if passed else 'FAIL'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
