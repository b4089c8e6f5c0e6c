"""Everything that can go wrong between a real firmware and the host: no wrong result is accepted, nothing hangs.

The firmware runs in QEMU and is talked to over the runner's own socket, and over a pty as over a serial port. Every
trial has its seed. A few of each kind run with the emulators, 200 with `full`.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnbuild.board import find
from nnbuild.device.description import ModelInfo
from nnbuild.device.link import Link, Timing
from nnbuild.device.problems import DeviceMissing, TransportClosed, WrongFirmware
from nnbuild.device.session import measure, open_model
from nnbuild.device.transport import SerialTransport, Transport
from nnbuild.emit.emit import digest
from nnbuild.errors import NnbuildError
from nnbuild.job import build_program, place
from nnbuild.ops import interpret
from nnbuild.pipeline import Compiled, Options, compile_model
from tests.boards.conftest import needs_tools
from tests.boards.emulated import Device, device, on_pty
from tests.cli.conftest import Nnbuild, nnbuild  # noqa: F401 - a fixture
from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, random_arrays, sequential
from tests.link.link_devices import NO_FAULTS, Faults, SpoiltTransport

pytestmark = pytest.mark.emulator

FEW, MANY = 10, 200
BOARD = "stm32f405"
SAMPLES = 2
SOON = Timing(quiet=0.004, first=0.1, longest=0.4, patience=30.0, run_patience=30.0, tries=400)
IMPATIENT = Timing(quiet=0.004, first=0.05, longest=0.1, patience=0.25, run_patience=0.25)
LONGEST = 60.0
"""Seconds after which a trial counts as hanging. Most take less than one."""

BYTES = {
    "dropped": Faults(drop=0.01),
    "flipped": Faults(flip=0.01),
    "doubled": Faults(double=0.01),
    "injected": Faults(inject=0.01),
    "delayed": Faults(delay=0.01),
    "all": Faults(0.01, 0.01, 0.01, 0.01, 0.01),
}
how_many = pytest.mark.parametrize("trials", [FEW, pytest.param(MANY, marks=pytest.mark.full)])


@dataclass(frozen=True)
class Built:
    compiled: Compiled
    program: Path

    @property
    def hash(self) -> str:
        return digest(self.compiled.graph)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, Built]:
    """Two models that differ in nothing but their weights: x[8] -> Dense(200) -> Dense(200) -> Dense(3), int8."""
    needs_tools(find(BOARD))
    found = []
    for name, sign in (("this", 1), ("other", -1)):
        folder = tmp_path_factory.mktemp(name)
        config = sequential(input_layer("x", [8]), dense("wide", 200, activation="relu"), dense("mix", 200), dense("y", 3))
        shapes = {"wide": ((8, 200), (200,)), "mix": ((200, 200), (200,)), "y": ((200, 3), (3,))}
        weights = {layer: [sign * array for array in random_arrays(*shape)] for layer, shape in shapes.items()}
        compiled = compile_model(Options(put(folder / "net.h5", h5_bytes(config, weights)), BOARD, "int8"))
        with place(None, None) as where:
            found.append(Built(compiled, build_program(compiled, type(where)(folder))))
    return found[0], found[1]


@contextmanager
def over(found: Device, seed: int) -> Iterator[Transport]:
    """The runner's own socket for even seeds, a serial port for odd ones."""
    if seed % 2 == 0:
        yield found.line
        return
    with on_pty(found.line) as path, SerialTransport(path) as line:
        yield line


def trial(line: Transport, built: Built, seed: int, timing: Timing = SOON, opened: Callable[[], None] | None = None) -> Link:
    """A whole measurement of a board, whose every integer must be right."""
    begin = time.monotonic()
    link = Link(line, timing, random_bits=random.Random(seed).getrandbits, unit="instructions")
    try:
        model = open_model(link, built.hash)
        if opened is not None:
            opened()
        measured(link, model, built, seed)
    finally:
        assert time.monotonic() - begin < LONGEST, f"seed {seed} takes too long"
    return link


def measured(link: Link, model: ModelInfo, built: Built, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(SAMPLES, 8)).astype(np.float32)
    result = measure(link, model, [{model.inputs[0].name: sample} for sample in x])
    graph = built.compiled.graph
    wanted = interpret.run(graph, {graph.inputs[0]: x}, "float64")[graph.outputs[0]]
    np.testing.assert_array_equal(result.runs.raw[0], wanted, f"seed {seed}")
    assert min(result.runs.ticks) > 50_000
    assert len(result.layers) == 3 and 0 < result.stack.used < result.stack.size


@how_many
@pytest.mark.parametrize("kind", BYTES)
def test_bytes_harmed_on_the_line(models: tuple[Built, Built], tmp_path: Path, kind: str, trials: int) -> None:
    """One byte in a hundred, of everything that is said either way."""
    chunks, repeats = [], 0
    with device(find(BOARD), models[0].program, tmp_path) as found:
        for seed in range(trials):
            with over(found, seed) as line:
                link = trial(SpoiltTransport(line, BYTES[kind], seed), models[0], seed)
            chunks.append(link._chunk)
            repeats += link.counters.repeats
    assert repeats > trials, "the line was not bad at all"
    if kind != "delayed":
        assert min(chunks) < 256, "chunks get smaller until they go through"


@how_many
def test_resets_in_the_middle(models: tuple[Built, Built], tmp_path: Path, trials: int) -> None:
    """At any operation after the greeting, and up to a run's length later. The sample is begun anew."""
    restarted = 0
    with device(find(BOARD), models[0].program, tmp_path) as found:
        for seed in range(trials):
            chance = random.Random(seed)
            when, later = chance.randrange(1, 25), chance.uniform(0.0, 0.02)
            timers: list[threading.Timer] = []
            armed: list[int] = []

            def before(operation: int) -> None:
                if armed and operation == armed[0]:  # noqa: B023 - called in this turn only
                    timers.append(threading.Timer(later, found.reset))  # noqa: B023
                    timers[0].start()  # noqa: B023

            with over(found, seed) as line:
                spoilt = SpoiltTransport(line, NO_FAULTS, seed, before)
                link = trial(spoilt, models[0], seed, opened=lambda: armed.append(spoilt.operations + when))  # noqa: B023
            for timer in timers:
                timer.join()
            restarted += link.counters.requests > 20
            assert timers, f"seed {seed}: it was over before operation {when}"
    assert restarted > trials / 2
