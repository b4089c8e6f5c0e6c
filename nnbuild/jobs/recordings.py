"""Turns recordings into calibration samples: the network's inputs while it listens to them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.features.config import recipe_of
from nnbuild.features.network_binding import hearing_of
from nnbuild.features.wav import chunks, read_wav, wav_files
from nnbuild.model.graph import Graph

MOST = 4096
"""Maximum number of windows; from more, evenly spaced ones are taken."""


def is_sound(path: Path | None) -> bool:
    if path is None:
        return False
    return path.suffix.lower() == ".wav" or (path.is_dir() and any(path.rglob("*.[wW][aA][vV]")))


@contextmanager
def samples_from_recordings(features: Path | None, calibrate: Path | None, graph: Graph) -> Iterator[Path | None]:
    """A file of samples computed from recordings; any other file is returned unchanged."""
    if calibrate is None or not is_sound(calibrate):
        yield calibrate
        return
    if features is None:
        step = "Give the model's front end with --features FILE.toml"
        raise UsageError(f"calibration {str(calibrate)!r}", "these are recordings.", step)
    hearing = hearing_of(recipe_of(features), graph)
    framing = hearing.front_end.framing
    found = []
    for each in wav_files(calibrate):
        whole = chunks(framing, read_wav(each, framing))
        found.append(hearing.windows(hearing.entered(hearing.front_end.rows(whole.reshape(-1, *whole.shape[2:])))))
    windows = np.concatenate(found)
    if not len(windows):
        least = framing.window + (hearing.rows - 1) * framing.step
        cause = f"no recording reaches the {least:,} samples that the network needs."
        raise UsageError(f"calibration {str(calibrate)!r}", cause, "Give longer ones.")
    windows = windows[np.linspace(0, len(windows) - 1, min(MOST, len(windows))).astype(np.int64)]
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        path = Path(folder) / "heard.npy"
        np.save(path, windows, allow_pickle=False)
        yield path
