"""Reads settings of spectrograms, mel bands and cepstra, and their presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.features.frontend import FrontEnd
from nnbuild.features.settings import Table
from nnbuild.features.spectral_frontend import SpectralFrontEnd
from nnbuild.features.spectral_tables import Spectral

OF_A_CLIP = {
    "top_db": "The largest value of a clip is not known while it is recorded: train with a fixed floor (least = …).",
    "normalize": "A clip's largest sample is not known while it is recorded: train with a fixed gain (gain = …).",
    "cmvn": "Means and variances over a window of frames belong in the model: begin it with a normalization.",
    "center": "A centred frame needs samples that have not arrived yet: rows are those of center=False.",
}
"""Settings of other tools that need a whole clip, and what to do instead."""
STREAMING_WORD = dict(
    window=1024, step=512, shape="hamming", periodic=False, single=True, emphasis=0.96875,
    times=1 / 1024, low=0.0, high=8000.0, least=1e-30, logarithm="db", add=52.0, multiply=1 / 64, minimum=0.0,
    maximum=1.0,
)  # fmt: skip
KWS = dict(window=480, step=320, single=True, of="magnitude", low=20.0, high=4000.0, more=1e-6)
EDGE_MFE = dict(
    window=320, step=160, fft=256, shape="none", emphasis=0.98, times=1 / 256, low=0.0, scale="bins", least=1e-30,
    logarithm="db", add=52.0, multiply=1 / 64, minimum=0.0, maximum=1.0,
)  # fmt: skip
KERAS_MEL = dict(
    window=2048, step=512, fft=2048, bands=128, low=20.0, high=8000.0, least=1e-10, logarithm="db", centred=True,
    single=True,
)  # fmt: skip
LIBROSA = dict(
    rate=22050, window=2048, step=512, scale="slaney", low=0.0, bands=128, least=1e-10, logarithm="db", gain=1 / 32768
)
LOG_MEL: Mapping[str, Mapping[str, Any]] = {
    "tf": KWS,
    "mlperf_str_ww": STREAMING_WORD,
    "keras": KERAS_MEL,
    "librosa": LIBROSA,
    "edge_impulse_mfe": EDGE_MFE,
}
MFCC: Mapping[str, Mapping[str, Any]] = {
    "tf": KWS | {"coefficients": 13},
    "mlperf_kws": KWS | {"coefficients": 10},
    "librosa": LIBROSA | {"coefficients": 20, "dct": "ortho"},
}
SPECTROGRAM: Mapping[str, Mapping[str, Any]] = {
    "tf": {"window": 480, "step": 320, "single": True, "of": "magnitude", "logarithm": "none", "bands": 0},
    "keras": {
        **{"window": 256, "step": 128, "periodic": False, "density": True, "bands": 0},
        **{"least": 1e-7, "multiply": 0.5, "doubled": False},
    },
    "keras_psd": {
        **{"window": 256, "step": 128, "periodic": False, "density": True, "bands": 0},
        **{"logarithm": "none", "doubled": True},
    },
}


def spectral(table: Table, preset: Mapping[str, Any], aside: tuple[str, ...]) -> FrontEnd:
    for key, step in OF_A_CLIP.items():
        if table.values.get(key) not in (None, False, 0):
            table.refuse(key, "it needs the whole clip, and a stream has no end.", step)
    aside = (*aside, *OF_A_CLIP, "weights")
    s = table.read(Spectral, aside, preset)
    table.between("rate", s.rate, 100, 192000)
    table.between("window", s.window, 16, 8192)
    table.between("step", s.step, 1, s.window if s.emphasis else 1 << 20)
    if s.fft:
        table.between("fft", s.fft, 16, 8192)
        if s.fft & (s.fft - 1):
            table.refuse(
                "fft", f"{s.fft} is not a power of two.", "Give one, or leave it out for the next after window."
            )
    for key, known in WORDS.items():
        if getattr(s, key) not in known:
            table.choose(key, {each: each for each in known})
    table.between("bands", s.bands, 0, 512)
    table.between("low", s.low, 0, s.rate / 2)
    table.between("high", s.top, s.low + 1, s.rate / 2)
    table.between("coefficients", s.coefficients, 0, s.values)
    table.between("least", s.least, 0, 1e30)
    table.between("more", s.more, 0, 1e30)
    if s.minimum >= s.maximum:
        cause = f"{s.minimum:g} is not below maximum = {s.maximum:g}: every feature would be the same."
        table.refuse("minimum" if "minimum" in table.values else "maximum", cause, "Give a smaller minimum.")
    if s.logarithm != "none" and s.least == 0 and s.more == 0:
        table.refuse("logarithm", "silence has none.", "Set least = 1e-10, or more = 1e-6 to be added.")
    return SpectralFrontEnd(replace(s, matrix=_matrix(table, s)) if "weights" in table.values else s)


WORDS = {
    "shape": ("hann", "hamming", "none"),
    "of": ("power", "magnitude"),
    "scale": ("htk", "slaney", "bins"),
    "logarithm": ("ln", "db", "none"),
    "dct": ("tf", "ortho"),
}


def _matrix(table: Table, s: Spectral) -> tuple[tuple[float, ...], ...]:
    """Weights from a file, as used in training: by bin, then by band."""
    name = table.values["weights"]
    path = table.path.parent / name if isinstance(name, str) else Path()
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        table.refuse("weights", f"{name!r} cannot be read as .npy ({error}).", "Save the matrix with numpy.save().")
    if found.shape != (s.points // 2 + 1, s.bands) or found.dtype.kind != "f" or not np.isfinite(found).all():
        cause = f"its matrix is {found.dtype} of shape {found.shape}, not floats of ({s.points // 2 + 1}, {s.bands})."
        table.refuse("weights", cause, "Save the weights of every bin for every band.")
    return tuple(tuple(map(float, row)) for row in found.T)
