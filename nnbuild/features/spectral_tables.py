"""The settings of spectrograms, mel bands and cepstra in floats, and the tables that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectral:
    """Lengths in samples; bands in hertz, 0 for half the rate. `bands` 0 keeps the bins of the spectrum.

    emphasis: of what is taken off a sample times its predecessor. gain: of samples, as 1 / 32768.
    of: power, magnitude, or decibels are of their squares; each times `times`.
    logarithm: none, ln, or db (10 times that of base 10), of what is at least `least`, or more by `more`.
    then: added, times, held within low and high.
    """

    rate: int = 16000
    window: int = 480
    step: int = 320
    fft: int = 0
    shape: str = "hann"
    periodic: bool = True
    single: bool = False
    """The window as TensorFlow computes it, in float32: at its ends that shows."""
    centred: bool = False
    density: bool = False
    emphasis: float = 0.0
    gain: float = 1.0 / 32768
    of: str = "power"
    times: float = 1.0
    doubled: bool = False
    bands: int = 40
    low: float = 20.0
    high: float = 0.0
    scale: str = "htk"
    logarithm: str = "ln"
    least: float = 0.0
    more: float = 0.0
    add: float = 0.0
    multiply: float = 1.0
    minimum: float = -1e30
    maximum: float = 1e30
    coefficients: int = 0
    dct: str = "tf"
    matrix: tuple[tuple[float, ...], ...] = ()
    """Weights from a file, by band."""

    @property
    def points(self) -> int:
        return self.fft or 1 << (self.window - 1).bit_length()

    @property
    def heard(self) -> int:
        """Samples of a frame that count."""
        return min(self.window, self.points)

    @property
    def top(self) -> float:
        return self.high or self.rate / 2

    @property
    def values(self) -> int:
        """Before a cosine transform."""
        return self.bands or self.points // 2 + 1


def window(s: Spectral) -> Doubles:
    """With the gain; of the whole transform, zeros where nothing is heard."""
    size = s.heard
    share = {"hann": 0.5, "hamming": 0.54, "none": 1.0}[s.shape]
    if s.single:
        round_, whole = np.float32, s.periodic and size % 2 == 0
        at = round_(2 * np.pi) * np.arange(size, dtype=np.float32) / round_(size if whole else max(1, size - 1))
        cosine = np.cos(at.astype(np.float64)).astype(np.float32)
        values = (round_(share) - round_(1 - share) * cosine).astype(np.float64)
    else:
        values = share - (1 - share) * np.cos(2 * np.pi * np.arange(size) / (size if s.periodic else max(1, size - 1)))
    if s.density:
        values = values / np.sqrt((values**2).sum())
    out = np.zeros(s.points)
    first = (s.points - size) // 2 if s.centred else 0
    out[first : first + size] = values.astype(np.float32).astype(np.float64) * s.gain
    return out


def bands(s: Spectral) -> Doubles:
    """Weights of bins by band: with what the spectrum is to be multiplied by, and halves for twice the transform."""
    bins = s.points // 2 + 1
    half = 0.25 if s.of == "power" else 0.5
    if not s.bands:
        inner = np.full(bins, 2.0 if s.doubled else 1.0)
        inner[[0, -1]] = 1.0
        return np.diag(inner * half * s.times)
    if s.matrix:
        return np.asarray(np.array(s.matrix, np.float64) * half * s.times)
    weights = {"htk": _htk, "slaney": _slaney, "bins": _whole_bins}[s.scale](s, bins)
    return np.asarray(weights * half * s.times)


def _mel(hertz: Doubles) -> Doubles:
    return np.asarray(1127.0 * np.log(1.0 + hertz / 700.0))


def _edges(scale: Callable[[Doubles], Doubles], s: Spectral) -> Doubles:
    low, high = scale(np.array([s.low, s.top]))
    return np.linspace(low, high, s.bands + 2)


def _triangles(places: Doubles, edges: Doubles) -> Doubles:
    low, center, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    up, down = (places - low) / (center - low), (high - places) / (high - center)
    return np.asarray(np.maximum(0.0, np.minimum(up, down)))


def _htk(s: Spectral, bins: int) -> Doubles:
    """Triangles on the mel scale, in single floats as TensorFlow computes them: narrow bands show the difference. The
    first bin counts nowhere."""
    single = np.float32

    def to_mel(hertz: Doubles) -> npt.NDArray[np.float32]:
        ratio = single(1) + hertz.astype(single) / single(700)
        return single(1127) * np.log(ratio.astype(np.float64)).astype(single)

    low, high = to_mel(np.array([s.low, s.top]))
    step = (high - low) / single(s.bands + 1)
    edges = (low + step * np.arange(s.bands + 2).astype(single)).astype(single)
    edges[-1] = high
    each = single(s.rate / 2) / single(bins - 1)
    places = to_mel((np.arange(bins).astype(single) * each).astype(np.float64))
    up = (places - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - places) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(single(0), np.minimum(up, down)).astype(np.float64)
    weights[:, 0] = 0.0
    return np.asarray(weights)


def _slaney(s: Spectral, bins: int) -> Doubles:
    """Triangles in hertz at places of Slaney's scale, of equal areas."""

    def to_mel(hertz: Doubles) -> Doubles:
        linear = hertz * 3 / 200
        return np.where(hertz >= 1000, 15 + 27 * np.log(np.maximum(hertz, 1) / 1000) / np.log(6.4), linear)

    def to_hertz(mel: Doubles) -> Doubles:
        return np.where(mel >= 15, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)), mel * 200 / 3)

    edges = to_hertz(_edges(to_mel, s))
    weights = _triangles(np.linspace(0, s.rate / 2, bins)[None, :], edges)
    return np.asarray(weights * (2 / (edges[2:] - edges[:-2]))[:, None])


def _whole_bins(s: Spectral, bins: int) -> Doubles:
    """Triangles between whole bins, the last edge a little lower."""
    edges = _edges(_mel, s)
    hertz = 700 * (np.exp(edges / 1127.0) - 1)
    hertz[-1] -= 0.001
    at = np.floor((s.points + 1) * hertz / s.rate).astype(np.int64)
    weights = np.zeros((s.bands, bins))
    for band in range(s.bands):
        low, center, high = at[band : band + 3]
        for k in range(low, center):
            weights[band, k] = (k - low) / (center - low)
        for k in range(center, min(high, bins)):
            weights[band, k] = (high - k) / (high - center)
    return weights


def cosines(s: Spectral) -> Doubles:
    """By coefficient."""
    k, n = np.arange(s.coefficients)[:, None], np.arange(s.values)[None, :]
    table = np.cos(np.pi * k * (n + 0.5) / s.values) * np.sqrt(2.0 / s.values)
    if s.dct == "ortho":
        table[0] /= np.sqrt(2.0)
    return np.asarray(table)
