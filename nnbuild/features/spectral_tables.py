"""Settings of spectrograms, mel bands and cepstra in floats, and the tables derived from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Spectral:
    """Lengths in samples; bands in hertz, 0 for half the rate. `bands` 0 keeps the bins of the spectrum. emphasis:
    factor of the previous sample that is subtracted. gain: of samples, such as 1 / 32768. of: power, magnitude, or the
    squares for decibels; each times `times`. logarithm: none, ln, or db (10 times base 10), of at least `least`, or
    after adding `more`. then: added, multiplied, clamped to low and high.
    """

    rate: int = 16000
    window: int = 480
    step: int = 320
    fft: int = 0
    shape: str = "hann"
    periodic: bool = True
    single: bool = False
    """Compute the window in float32 as TensorFlow does, which differs at its ends."""
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
        """Samples of a frame that are used."""
        return min(self.window, self.points)

    @property
    def top(self) -> float:
        return self.high or self.rate / 2

    @property
    def values(self) -> int:
        """Values before the cosine transform."""
        return self.bands or self.points // 2 + 1


def window(s: Spectral) -> Doubles:
    """The window including the gain, zero-padded to the transform's length."""
    size = s.heard
    share = {"hann": 0.5, "hamming": 0.54, "none": 1.0}[s.shape]
    if s.single:
        round_, whole = np.float32, s.periodic and size % 2 == 0
        at = round_(2 * np.pi) * np.arange(size, dtype=np.float32) / round_(size if whole else max(1, size - 1))
        values = (round_(share) - round_(1 - share) * _many_cosines(at)).astype(np.float64)
    else:
        values = share - (1 - share) * np.cos(2 * np.pi * np.arange(size) / (size if s.periodic else max(1, size - 1)))
    if s.density:
        values = values / np.sqrt((values**2).sum())
    out = np.zeros(s.points)
    first = (s.points - size) // 2 if s.centred else 0
    out[first : first + size] = values.astype(np.float32).astype(np.float64) * s.gain
    return out


def bands(s: Spectral) -> Doubles:
    """Weights of bins by band, including the spectrum's factor."""
    bins = s.points // 2 + 1
    if not s.bands:
        inner = np.full(bins, 2.0 if s.doubled else 1.0)
        inner[[0, -1]] = 1.0
        return np.diag(inner * s.times)
    if s.matrix:
        return np.asarray(np.array(s.matrix, np.float64) * s.times)
    weights = {"htk": _htk, "slaney": _slaney, "bins": _whole_bins}[s.scale](s, bins)
    return np.asarray(weights * s.times)


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
    """Triangles on the mel scale, in float32 as TensorFlow computes them, which matters for narrow bands. The first bin
    is never used."""
    single = np.float32

    def to_mel(hertz: Singles, log: Callable[[Singles], Singles]) -> Singles:
        return single(1127) * log(single(1) + hertz / single(700))

    low, high = to_mel(np.array([s.low, s.top], single), lambda x: np.log(x.astype(np.float64)).astype(single))
    places = to_mel(_steps(single(0), single(s.rate / 2), bins), _many_logarithms)
    edges = _steps(low, high, s.bands + 2)
    up = (places - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - places) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(single(0), np.minimum(up, down)).astype(np.float64)
    weights[:, 0] = 0.0
    return np.asarray(weights)


def _steps(low: np.float32, high: np.float32, count: int) -> Singles:
    step = (high - low) / np.float32(count - 1)
    inner = low + step * np.arange(count - 1).astype(np.float32)
    return np.append(inner, high).astype(np.float32)


def _many_logarithms(x: Singles) -> Singles:
    """Logarithms as in TensorFlow's vectorized code: a rational function around 1, and the exponent."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < np.float32(np.sqrt(0.5))
    z = (mantissa - np.float32(1)) + np.where(low, mantissa, np.float32(0))
    above = z * _polynomial(z, (0.18256296349849254, 1.0000000190281063, 1.0000000190281136))
    below = _polynomial(z, (0.049616247954120038, 0.59923249590823520, 1.4999999999999927, 1.0))
    turns = (exponent - low).astype(np.float32)
    return np.asarray(turns * np.float32(np.log(2.0)) + above / below, np.float32)


def _many_cosines(x: Singles) -> Singles:
    """Cosines as in TensorFlow's vectorized code, eight at a time: polynomials within an eighth of a turn. Remaining
    ones are exact."""
    single, many = np.float32, len(x) // 8 * 8
    quarters = (x * single(2 / np.pi) + single(1.5 * 2**23)) - single(1.5 * 2**23)
    near, turn = x, quarters.astype(np.int64)
    for part in (-1.5703125, -0.000483989715576171875, 1.62865035235881805e-07, 5.5644315544167710e-11):
        near = quarters * single(part) + near
    square = near * near
    even = _polynomial(square, (2.4372266125283204e-05, -0.00138865201734006405, 0.0416666194796562195, -0.5, 1.0))
    odd = _polynomial(square, (-0.00019592341128370284, 0.00833268736556168517, -0.16666662693023682)) * square
    found = np.where(turn % 2 == 0, even, odd * near + near) * np.where((turn + 1) % 4 < 2, single(1), single(-1))
    return np.concatenate([found[:many], np.cos(x[many:].astype(np.float64))]).astype(single)


def _polynomial(x: Singles, coefficients: Sequence[float]) -> Singles:
    total = np.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        total = total * x + np.float32(each)
    return total


def _slaney(s: Spectral, bins: int) -> Doubles:
    """Triangles in hertz at positions of Slaney's scale, of equal areas."""

    def to_mel(hertz: Doubles) -> Doubles:
        linear = hertz * 3 / 200
        return np.where(hertz >= 1000, 15 + 27 * np.log(np.maximum(hertz, 1) / 1000) / np.log(6.4), linear)

    def to_hertz(mel: Doubles) -> Doubles:
        return np.where(mel >= 15, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)), mel * 200 / 3)

    edges = to_hertz(_edges(to_mel, s))
    weights = _triangles(np.linspace(0, s.rate / 2, bins)[None, :], edges)
    return np.asarray(weights * (2 / (edges[2:] - edges[:-2]))[:, None])


def _whole_bins(s: Spectral, bins: int) -> Doubles:
    """Triangles between whole bins, the last edge slightly lower."""
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
    """Rows of the cosine transform, by coefficient."""
    k, n = np.arange(s.coefficients)[:, None], np.arange(s.values)[None, :]
    table = np.cos(np.pi * k * (n + 0.5) / s.values) * np.sqrt(2.0 / s.values)
    if s.dct == "ortho":
        table[0] /= np.sqrt(2.0)
    return np.asarray(table)
