"""Reads .wav files as 16-bit samples, writes them, and synthesizes sound for checks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.features.frontend import Array, Framing
from nnbuild.features.network_binding import Hearing

LARGEST = 1 << 30
"""Most bytes of a file."""
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE


def wav_files(path: Path) -> list[Path]:
    """The file, or all .wav files below a folder, sorted by name."""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix.lower() == ".wav" and each.is_file())
    if not found:
        raise UsageError(str(path), "there is no .wav file in this folder.", "Name a folder with sound, or a file.")
    return found


def read_wav(path: Path, framing: Framing) -> Array:
    """Samples at the front end's rate and number of channels; extra channels of a file are dropped for a mono front
    end."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(str(path), "it is larger than 1 GB.", "Cut it in parts.")
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(str(path), f"it cannot be read ({error.strerror}).", "Check its name.") from None
    kind, channels, rate, bits, data = _parsed(path, raw)
    if rate != framing.rate:
        cause = f"it has {rate} samples a second, and the front end takes {framing.rate}."
        raise UsageError(str(path), cause, f"Convert it first, for example: sox in.wav -r {framing.rate} out.wav")
    if channels < framing.axes:
        cause = f"it has {channels} channels, and the front end takes {framing.axes}."
        raise UsageError(str(path), cause, "Record one channel for each axis.")
    whole = _whole(path, kind, bits, data)
    values = whole[: len(whole) // channels * channels].reshape(-1, channels)[:, : framing.axes]
    return values[:, 0] if framing.axes == 1 else values


def _parsed(path: Path, raw: bytes) -> tuple[int, int, int, int, bytes]:
    if len(raw) < 12 or raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        raise UsageError(str(path), "it is not a .wav file.", "Give RIFF files with uncompressed samples.")
    at, form = 12, None
    while at + 8 <= len(raw):
        name, size = raw[at : at + 4], int(struct.unpack_from("<I", raw, at + 4)[0])
        body = raw[at + 8 : at + 8 + size]
        if name == b"fmt " and len(body) >= 16:
            kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if kind == EXTENSIBLE and len(body) >= 26:
                kind = struct.unpack_from("<H", body, 24)[0]
            form = kind, channels, rate, bits
        if name == b"data" and form is not None:
            return *form, body
        at += 8 + size + size % 2
    raise UsageError(str(path), "it contains no samples, or does not define their format.", "Record it again.")


def _whole(path: Path, kind: int, bits: int, data: bytes) -> Array:
    """The samples as 16-bit integers."""
    if kind == PCM and bits == 16:
        return np.frombuffer(data[: len(data) // 2 * 2], "<i2")
    if kind == PCM and bits == 8:
        return (np.frombuffer(data, np.uint8).astype(np.int16) - 128) * 256
    if kind == PCM and bits in (24, 32):
        size = bits // 8
        each = np.frombuffer(data[: len(data) // size * size], np.uint8).reshape(-1, size)
        return np.ascontiguousarray(each[:, -2:]).view("<i2")[:, 0]
    if kind == FLOAT and bits == 32:
        values = np.nan_to_num(np.frombuffer(data[: len(data) // 4 * 4], "<f4").astype(np.float64))
        return np.clip(np.floor(values * 32768 + 0.5), -32768, 32767).astype(np.int16)
    raise UsageError(
        str(path), f"its samples are of format {kind} with {bits} bits.", "Give PCM of 8 to 32 bits, or floats of 32."
    )


def write_wav(samples: Array, rate: int) -> bytes:
    """The content of a .wav file with 16-bit samples; several channels are columns."""
    data = np.ascontiguousarray(samples, "<i2")
    channels = 1 if data.ndim == 1 else data.shape[1]
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + data.nbytes, b"WAVE", b"fmt ", 16, PCM, channels,
                       rate, rate * 2 * channels, 2 * channels, 16, b"data", data.nbytes)  # fmt: skip
    return head + data.tobytes()


def made_up(framing: Framing, seconds: float = 1.0, seed: int = 0) -> Iterator[Array]:
    """Sounds that exercise every part of a front end: voice-like, noise, full scale, steps, silence, impulses."""
    chance = np.random.default_rng(seed)
    count = max(framing.window + 12 * framing.step, int(framing.rate * seconds))
    time = np.arange(count) / framing.rate
    voice = np.zeros((count, framing.axes))
    pitch = np.cumsum(0.0075 * framing.rate * (1 + 0.3 * np.sin(11 * time))) / framing.rate
    for tone in range(1, 20):
        swell = 0.5 + 0.5 * np.sin(2 * np.pi * (3 + 0.3 * tone) * time)
        for axis in range(framing.axes):
            voice[:, axis] += np.sin(2 * np.pi * tone * pitch + chance.uniform(0, 6)) * swell / tone
    noise = chance.normal(size=(count, framing.axes))
    sparse = np.where(chance.random((count, framing.axes)) < 2 / framing.window, 40000 * np.sign(noise), 0)
    steps = np.where(np.sin(2 * np.pi * 0.0275 * framing.rate * time) > 0, 40000, -40000)[:, None]
    parts = (
        7000 * voice + 20 * noise,
        3000 * noise,
        60000 * noise,
        np.repeat(steps, framing.axes, 1),
        0 * noise,
        sparse,
    )
    for part in parts:
        whole = np.clip(np.floor(part + 0.5), -32768, 32767).astype(np.int16)
        yield whole[:, 0] if framing.axes == 1 else whole


def chunks(framing: Framing, samples: Array) -> Array:
    """A sound in steps, as a program takes it; an incomplete last step is dropped."""
    shape = (framing.step,) if framing.axes == 1 else (framing.step, framing.axes)
    whole = np.asarray(samples, framing.sample)
    return whole[: len(whole) // framing.step * framing.step].reshape(-1, *shape)


def one_step(hearing: Hearing) -> dict[str, Array]:
    """Input for timing one step."""
    framing = hearing.front_end.framing
    return {"sound": chunks(framing, next(made_up(framing)))[2]}
