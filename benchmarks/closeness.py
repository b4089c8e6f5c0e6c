#!/usr/bin/env python3
"""How close front ends in floats are to those they are called after: python benchmarks/closeness.py

The largest difference of features, as a share of the largest of their frame: how far the two are apart, and how far
each is from the same computed in double precision with exact tables. Where theirs is farther than may be, ours must be
near enough to what is exact. Behind it, how many features differ once they are quantized to int8. What is not installed
here is left out by name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.features.spectral_config import LOG_MEL, MFCC, SPECTROGRAM
from nnbuild.features.spectral_frontend import SpectralFrontEnd
from nnbuild.features.spectral_tables import Spectral, bands, cosines
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


def exact(s: Spectral, samples: Any) -> Any:
    """In double precision, by tables that are not rounded."""
    x = samples.astype(np.float64)
    x = np.concatenate([x[:1], x[1:] - s.emphasis * x[:-1]]) * s.gain
    turns = np.arange(s.heard) / (s.heard if s.periodic else s.heard - 1)
    share = {"hann": 0.5, "hamming": 0.54, "none": 1.0}[s.shape]
    weights = share - (1 - share) * np.cos(2 * np.pi * turns)
    weights /= np.sqrt((weights**2).sum()) if s.density else 1.0
    count = max(0, (len(x) - s.window) // s.step + 1)
    each = np.stack([x[i * s.step : i * s.step + s.heard] * weights for i in range(count)])
    spectrum = np.abs(np.fft.rfft(each, s.points)) ** (2 if s.of == "power" else 1)
    values = spectrum @ (triangles(s) if s.bands and s.scale == "htk" and not s.matrix else bands(s)).T
    if s.logarithm != "none":
        values = np.log(np.maximum(values, s.least) + s.more) * (10 / np.log(10) if s.logarithm == "db" else 1.0)
    values = np.clip((values + s.add) * s.multiply, s.minimum, s.maximum)
    return values @ cosines(s).T if s.coefficients else values


def triangles(s: Spectral) -> Any:
    """On the mel scale; the first bin counts nowhere."""

    def mel(hertz: Any) -> Any:
        return 1127 * np.log(1 + hertz / 700)

    edges = np.linspace(mel(s.low), mel(s.top), s.bands + 2)
    places = mel(np.linspace(0, s.rate / 2, s.points // 2 + 1))
    up, down = (
        (places - edges[:-2, None]) / np.diff(edges)[:-1, None],
        (edges[2:, None] - places) / np.diff(edges)[1:, None],
    )
    weights = np.maximum(0, np.minimum(up, down)) * s.times
    weights[:, 0] = 0
    return weights


@dataclass
class Distance:
    """Shares of the largest of a frame: between the two, ours and theirs from what is exact; `differ` of `count`
    integers."""

    apart: float = 0.0
    ours: float = 0.0
    theirs: float = 0.0
    differ: int = 0
    count: int = 0

    def add(self, found: Any, right: Any, truth: Any) -> None:
        top = np.abs(right).max(axis=1, keepdims=True)
        heard = top[:, 0] > 1e-6 * top.max()

        def share(a: Any, b: Any) -> float:
            return float((np.abs(a - b) / np.maximum(top, 1e-30))[heard].max(initial=0.0))

        self.apart = max(self.apart, share(found, right))
        self.ours, self.theirs = max(self.ours, share(found, truth)), max(self.theirs, share(right, truth))
        step = max(np.ptp(right), 1e-30) / 255
        quantized = [np.floor((each - right.min()) / step + 0.5) for each in (found, right)]
        self.differ += int((quantized[0] != quantized[1]).sum())
        self.count += right.size

    def passed(self, most: float) -> bool:
        near = self.apart <= most or self.ours <= most < self.theirs
        return near and self.differ * 10_000 <= self.count

    def told(self, name: str, most: float) -> str:
        off = f"ours {self.ours:7.1e} and theirs {self.theirs:7.1e} off"
        verdict = "PASS" if self.passed(most) else "FAIL"
        return f"{name:<48}{self.apart:8.1e} of {most:.0e}  {off}  int8 {self.differ:>3} of {self.count:>8,}  {verdict}"


def compared(front_end: SpectralFrontEnd, theirs: Callable[[Any], Any]) -> Distance:
    found = Distance()
    for samples in made_up(front_end.framing, SECONDS):
        right = np.asarray(theirs(samples.astype(np.float32) / 32768), np.float64)
        ours, truth = front_end.rows(samples).astype(np.float64), exact(front_end.settings, samples)
        count = min(len(ours), len(right))
        found.add(ours[:count], right[:count], truth[:count])
    return found


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
            found = compared(front_end, theirs)
            missed += not found.passed(most)
            print(found.told(name, most), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
