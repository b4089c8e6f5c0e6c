"""Records sound from this PC's microphone with the package sounddevice, if installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.features.network_binding import Hearing
from nnbuild.model.graph import Array


def microphone(hearing: Hearing, seconds: float) -> Iterator[tuple[str, Array]]:
    """Yields recordings of this many seconds until interrupted. Each is processed from its own start."""
    framing = hearing.front_end.framing
    if framing.axes != 1:
        raise UsageError(
            "nnbuild listen", "a microphone cannot supply a sensor's axes.", "Give a recording: --wav FILE"
        )
    if not 0 < seconds <= 3600:
        raise UsageError("--seconds", f"{seconds:g} is not between 0 and 3600.", "Give seconds, for example 10.")
    try:
        device = importlib.import_module("sounddevice")
    except (ImportError, OSError):
        step = "Install it with pip install nnbuild[microphone], or give a file: --wav FILE"
        raise ToolMissing("nnbuild listen", "the package sounddevice is not installed.", step) from None
    while True:
        try:
            samples = device.rec(int(seconds * framing.rate), framing.rate, channels=1, dtype="int16", blocking=True)
        except KeyboardInterrupt:
            return
        yield "microphone", samples[:, 0]
