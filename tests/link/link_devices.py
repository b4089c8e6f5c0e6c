"""Devices for the link's tests: the C side compiled with a model written by hand, and lines that spoil bytes."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnbuild.device.link import Link, Timing
from nnbuild.device.transport import Transport

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LINK = [ROOT / "firmware/link/nn_link.c", ROOT / "firmware/link/nn_frame.c"]
HOST_MAIN = ROOT / "firmware/platform/host/main.c"
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]

# Patience for the simulated line, whose clock only moves when somebody waits.
FAST = Timing(quiet=0.002, first=0.05, longest=0.2, patience=20.0, run_patience=20.0, tries=200)
# Patience for real pipes under test, where every second counts.
SHORT = Timing(quiet=0.005, first=0.25, longest=0.5, patience=5.0, run_patience=5.0, tries=40)


def compile_c(sources: Sequence[Path], target: Path, *options: str, compiler: str = "gcc") -> Path:
    include = ["-I", str(ROOT / "firmware/link")]
    command = [compiler, *WARNINGS, "-O1", "-g", *include, *options, *map(str, sources), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def host_program(folder: Path, *options: str, compiler: str = "gcc") -> Path:
    """The host program with the fake model."""
    sources = [*LINK, HOST_MAIN, HERE / "fake_target.c"]
    name = "device" + "".join(options).replace("-", "_").replace("=", "_").replace(",", "_")
    return compile_c(sources, folder / f"{name}_{compiler}", "-pthread", *options, compiler=compiler)


class MemoryDevice:
    """The C side, loaded into this process: bytes in, bytes out, no time passes."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._buffer = ctypes.create_string_buffer(1 << 20)
        self.start()

    def start(self) -> None:
        self._library.memory_take(self._buffer, len(self._buffer))
        self._library.memory_start()

    def feed(self, data: bytes) -> None:
        self._library.memory_feed(data, len(data))

    def take(self) -> bytes:
        size: int = self._library.memory_take(self._buffer, len(self._buffer))
        return self._buffer.raw[:size]

    def log(self, text: str) -> None:
        self._library.memory_log(text.encode())

    def fault(self, kind: int, words: Sequence[int]) -> None:
        self._library.memory_fault(kind, (ctypes.c_uint32 * len(words))(*words), len(words))


@dataclass(frozen=True)
class Faults:
    """How often, per byte, each kind of harm is done."""

    drop: float = 0.0
    flip: float = 0.0
    double: float = 0.0
    inject: float = 0.0
    delay: float = 0.0


NO_FAULTS = Faults()


class MemoryTransport(Transport):
    """A line to a MemoryDevice with seeded faults in both directions and a clock of its own."""

    def __init__(
        self,
        device: MemoryDevice,
        faults: Faults = NO_FAULTS,
        seed: int = 0,
        before_feed: Callable[[MemoryTransport], None] | None = None,
    ) -> None:
        self.name = "fake device"
        self.device = device
        self.faults = faults
        self.random = random.Random(seed)
        self.before_feed = before_feed
        self.clock = 0.0
        self.written = 0
        self.operations = 0
        self.close_at: int | None = None  # the operation at which the cable is pulled
        self.silent = False
        self._to_device: list[tuple[float, bytes]] = []
        self._to_host: list[tuple[float, bytes]] = []

    def now(self) -> float:
        return self.clock

    def _operate(self) -> None:
        self.operations += 1
        if self.close_at is not None and self.operations >= self.close_at:
            raise self.closed("The line ended.")

    def write(self, data: bytes) -> None:
        self._operate()
        self.written += 1
        if not self.silent:
            self._to_device += self._spoil(data)
            self._carry()

    def read(self, timeout: float) -> bytes:
        self._operate()
        self._carry()
        data = self._due(self._to_host)
        if not data:
            self.clock += max(timeout, 1e-6)
            self._carry()
            data = self._due(self._to_host)
        return data

    def close(self) -> None:
        self.close_at = 0

    def _carry(self) -> None:
        arriving = self._due(self._to_device)
        if arriving:
            if self.before_feed is not None:
                self.before_feed(self)
            self.device.feed(arriving)
            self._to_host += self._spoil(self.device.take())

    def _due(self, pieces: list[tuple[float, bytes]]) -> bytes:
        """What has arrived: everything in front of the first piece that is still held up."""
        data = bytearray()
        while pieces and pieces[0][0] <= self.clock:
            data += pieces.pop(0)[1]
        return bytes(data)

    def _spoil(self, data: bytes) -> list[tuple[float, bytes]]:
        if self.faults is NO_FAULTS:
            return [(self.clock, data)]
        return spoil(data, self.faults, self.random, self.clock)


LONGEST_DELAY = 0.15


def spoil(
    data: bytes, faults: Faults, rng: random.Random, now: float, longest_delay: float = LONGEST_DELAY
) -> list[tuple[float, bytes]]:
    """What becomes of bytes on a bad line: pieces, and when each of them arrives."""
    pieces: list[tuple[float, bytes]] = []
    held_until, current = now, bytearray()
    for byte in data:
        current += spoil_byte(byte, faults, rng)
        if rng.random() < faults.delay:
            pieces.append((held_until, bytes(current)))
            held_until, current = held_until + rng.uniform(0.001, longest_delay), bytearray()
    return [*pieces, (held_until, bytes(current))]


def spoil_byte(byte: int, faults: Faults, rng: random.Random) -> bytes:
    out = bytearray()
    if rng.random() < faults.inject:
        out.append(rng.randrange(256))
    if rng.random() >= faults.drop:
        out.append(byte ^ (1 << rng.randrange(8)) if rng.random() < faults.flip else byte)
    if rng.random() < faults.double:
        out.append(byte)
    return bytes(out)


class SpoiltTransport(Transport):
    """A real line whose bytes are harmed and held up on the way, both ways; `before` sees every operation first."""

    def __init__(
        self,
        line: Transport,
        faults: Faults,
        seed: int,
        before: Callable[[int], None] | None = None,
        longest_delay: float = LONGEST_DELAY,
    ) -> None:
        self.name = line.name
        self.operations = 0
        self._line = line
        self._faults = faults
        self._random = random.Random(seed)
        self._before = before
        self._longest_delay = longest_delay
        self._to_device: list[tuple[float, bytes]] = []
        self._to_host: list[tuple[float, bytes]] = []

    def _spoil(self, waiting: list[tuple[float, bytes]], data: bytes) -> None:
        """The line keeps the order: what is sent behind something that is held up comes later."""
        begin = max(self.now(), waiting[-1][0] if waiting else 0.0)
        waiting += spoil(data, self._faults, self._random, begin, self._longest_delay)

    def hear(self, noise: bytes) -> None:
        """The host is to receive this."""
        self._to_host.append((self.now(), noise))

    def _operate(self) -> None:
        self.operations += 1
        if self._before is not None:
            self._before(self.operations)

    def write(self, data: bytes) -> None:
        self._operate()
        self._spoil(self._to_device, data)
        self._deliver()

    def read(self, timeout: float) -> bytes:
        self._operate()
        until = self.now() + timeout
        while True:
            self._deliver()
            data = self._due(self._to_host)
            now = self.now()
            if data or now >= until:
                return data
            next_due = [pieces[0][0] for pieces in (self._to_device, self._to_host) if pieces]
            arrived = self._line.read(max(0.0, min([until, *next_due]) - now))
            if arrived:
                self._spoil(self._to_host, arrived)

    def _deliver(self) -> None:
        data = self._due(self._to_device)
        if data:
            self._line.write(data)

    def _due(self, pieces: list[tuple[float, bytes]]) -> bytes:
        data = bytearray()
        while pieces and pieces[0][0] <= self.now():
            data += pieces.pop(0)[1]
        return bytes(data)

    def close(self) -> None:
        self._line.close()


def memory_link(transport: MemoryTransport, seed: int = 0) -> Link:
    return Link(transport, FAST, random_bits=random.Random(seed).getrandbits)


def samples(count: int, seed: int = 1) -> list[dict[str, np.ndarray]]:
    """Samples for the fake model, in its own units."""
    rng = np.random.default_rng(seed)
    return [
        {
            "a": rng.normal(size=(2, 3)).astype(np.float32),
            "b": (rng.integers(-40, 40, 4) * 0.5).astype(np.float32),
        }
        for _ in range(count)
    ]


def fake_outputs(sample: dict[str, np.ndarray], runs_before: int) -> tuple[np.ndarray, np.ndarray]:
    """What the fake model answers, after so many runs of its sequence."""
    total = (sample["a"][0] * np.float32(2) + sample["a"][1] * np.float32(2)).astype(np.float32)
    b = np.round(sample["b"] / 0.5).astype(int) - 3
    mixed = 3 * b - np.roll(b, -1) + runs_before + 1
    return total, np.clip(mixed, -128, 127).astype(np.int8)
