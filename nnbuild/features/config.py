"""Reads `[features]` and `[listen]`: the front end's settings, and how a network's answers become events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.base.names import identifier
from nnbuild.features.frontend import FrontEnd
from nnbuild.features.micro_frontend import MicroFrontEnd
from nnbuild.features.micro_tables import Micro
from nnbuild.features.sensor_frontend import PRESETS, sensor
from nnbuild.features.settings import Table, tables_of
from nnbuild.features.spectral_config import LOG_MEL, MFCC, SPECTROGRAM, spectral

MICRO_STEP = 0.0390625
"""One step of the microfrontend in the units that networks are trained with."""
COMMON = ("kind", "preset", "name", "rounding", "scale")


@dataclass(frozen=True)
class Listen:
    """How answers become events: see docs/sound.md. `classes` are numbers or names."""

    hop: int = 0
    classes: tuple[int | str, ...] = ()
    mean: int = 1
    cutoff: float = 0.5
    consecutive: int = 1
    cool_off: int = 0


@dataclass(frozen=True)
class Recipe:
    """`name` is the name of the front end's files, or empty: then the model's name is used."""

    path: Path
    front_end: FrontEnd
    name: str
    rounding: str
    scale: float
    listen: Listen

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Kind:
    """How one kind of front end is read, and its presets."""

    make: Callable[[Table, Mapping[str, Any]], FrontEnd]
    presets: Mapping[str, Mapping[str, Any]]
    roundings: tuple[str, ...]
    scale: float = 1.0
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Settings used without a preset."""


def _spectral(table: Table, preset: Mapping[str, Any]) -> FrontEnd:
    return spectral(table, preset, COMMON)


def _sensor(table: Table, preset: Mapping[str, Any]) -> FrontEnd:
    return sensor(table, preset, COMMON)


def _micro(table: Table, preset: Mapping[str, Any]) -> FrontEnd:
    micro = table.read(Micro, COMMON, {key: value for key, value in preset.items() if key != "scale"})
    table.between("rate", micro.rate, 1000, 192000)
    table.between("window_ms", micro.window_ms, 1, 1000)
    table.between("step_ms", micro.step_ms, 1, 10000)
    table.between("window_ms", micro.window, 16, 4096)
    table.between("channels", micro.channels, 2, 256)
    table.between("low", micro.low, 0, micro.rate / 2)
    table.between("high", micro.high, micro.low + 1, micro.rate / 2)
    table.between("smoothing_bits", micro.smoothing_bits, 1, 16)
    for key in ("even_smoothing", "odd_smoothing", "min_signal"):
        table.between(key, getattr(micro, key), 0, 1)
    table.between("pcan_gain_bits", micro.pcan_gain_bits, 16, 30)
    table.between("log_shift", micro.log_shift, 0, 10)
    return MicroFrontEnd(micro)


KINDS = {
    "micro": Kind(
        _micro,
        {
            "micro_wake_word": {},
            "micro_speech": {"step_ms": 20},
            "log_mel": {
                **{"even_smoothing": 0.0, "odd_smoothing": 0.0, "min_signal": 0.0, "pcan": False, "scale": 1 / 64},
            },
        },
        ("as the model", "device", "nearest", "truncate"),
        MICRO_STEP,
    ),
    "log_mel": Kind(_spectral, LOG_MEL, ("nearest", "truncate"), usual=LOG_MEL["tf"]),
    "mfcc": Kind(_spectral, MFCC, ("nearest", "truncate"), usual=MFCC["tf"]),
    "spectrogram": Kind(_spectral, SPECTROGRAM, ("nearest", "truncate"), usual=SPECTROGRAM["tf"]),
    "sensor": Kind(_sensor, PRESETS, ("nearest", "truncate")),
}


def recipe_of(path: Path) -> Recipe:
    tables = tables_of(path)
    if "features" not in tables:
        raise UsageError(str(path), "it has no table [features].", 'Begin with [features] and kind = "micro".')
    table = tables["features"]
    kind: Kind = table.choose("kind", KINDS)
    preset = table.choose("preset", kind.presets) if "preset" in table.values else kind.usual
    front_end = kind.make(table, preset)
    rounding: str = table.choose("rounding", {each: each for each in kind.roundings}, kind.roundings[0])
    named = kind.make is _spectral  # whose `scale` is that of the bands
    scale = kind.scale if named else table.values.get("scale", preset.get("scale", kind.scale))
    if not isinstance(scale, (int, float)) or not 0 < scale < 1e9:
        table.refuse(
            "scale", f"{scale!r} is not a number above 0.", "Give the size of one feature step in the model's units."
        )
    listen = _listen(tables["listen"]) if "listen" in tables else Listen()
    name = table.values.get("name", "")
    return Recipe(path, front_end, identifier(name) if name else "", rounding, float(scale), listen)


def _listen(table: Table) -> Listen:
    listen = table.read(Listen)
    if "hop" in table.values:
        table.between("hop", listen.hop, 1, 10000)
    table.between("mean", listen.mean, 1, 256)
    table.between("cutoff", listen.cutoff, -1e6, 1e6)
    table.between("consecutive", listen.consecutive, 1, 10000)
    table.between("cool_off", listen.cool_off, 0, 1000000)
    return listen
