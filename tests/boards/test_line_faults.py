"""Everything that can go wrong between a real firmware and the host: no wrong result is accepted, nothing hangs.

The firmware runs in QEMU and is talked to over the runner's own socket, and over a pty as over a serial port. Every
trial has its seed. Ten of each kind run with the emulators; with `full` those that `--trials` names, 0:200 by itself.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import NnbuildError
from nnbuild.board.tables import find
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.errors import DeviceMissing, TransportClosed, WrongFirmware
from nnbuild.device.link import Link, Timing
from nnbuild.device.session import measure, open_model
from nnbuild.device.transport import SerialTransport, Transport
from nnbuild.jobs.job import build_program, place
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import descriptor_of
from nnbuild.ops import interpret
from tests.boards.conftest import needs_tools
from tests.boards.emulated import Device, device, on_pty
from tests.cli.conftest import Nnbuild, nnbuild  # noqa: F401 - a fixture
from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, random_arrays, sequential
from tests.link.link_devices import NO_FAULTS, Faults, SpoiltTransport

pytestmark = pytest.mark.emulator

FEW, OTHER = 5, 10**6
"""Trials of each kind with the emulators, and the first of the seeds that are no trial's."""
BOARD = "stm32f405"
SAMPLES = 2
HELD_UP = 0.04
"""Seconds a byte is held up at most; the host repeats sooner when several in a row are."""
SOON = Timing(quiet=0.004, first=0.05, longest=0.4, patience=30.0, run_patience=30.0, tries=400)
IMPATIENT = Timing(quiet=0.004, first=0.05, longest=0.1, patience=0.25, run_patience=0.25)
LONGEST = 60.0
"""Seconds after which a trial counts as hanging. Most take less than one."""

BYTES = {
    "dropped": Faults(drop=0.01),
    "flipped": Faults(flip=0.01),
    "doubled": Faults(double=0.01),
    "injected": Faults(inject=0.01),
    "delayed": Faults(delay=0.01),
    "all": Faults(0.002, 0.002, 0.002, 0.002, 0.002),
}
how_many = pytest.mark.parametrize("trials", ["few", pytest.param("full", marks=pytest.mark.full)], indirect=True)


@dataclass(frozen=True)
class Built:
    compiled: Compiled
    program: Path

    @property
    def descriptor(self) -> bytes:
        """With a space, so that the device's is always read."""
        return descriptor_of(self.compiled) + b" "


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> range:
    if request.param == "few":
        return range(FEW)
    first, _, end = request.config.getoption("--trials").partition(":")
    return range(int(first), int(end))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, Built]:
    """Two models that differ in nothing but their weights: x[8] -> Dense(200) -> Dense(200) -> Dense(3), int8."""
    needs_tools(find(BOARD))
    found = []
    for name, sign in (("this", 1), ("other", -1)):
        folder = tmp_path_factory.mktemp(name)
        config = sequential(
            input_layer("x", [8]), dense("wide", 200, activation="relu"), dense("mix", 200), dense("y", 3)
        )
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


def trial(
    line: Transport, built: Built, seed: int, timing: Timing = SOON, opened: Callable[[], None] | None = None
) -> Link:
    """A whole measurement of a board, whose every integer must be right."""
    begin = time.monotonic()
    link = Link(line, timing, random_bits=random.Random(seed).getrandbits, unit="instructions")
    try:
        model = open_model(link, built.descriptor)
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
    assert min(result.runs.ticks) > 5_000
    assert len(result.layers) == 3 and 0 < result.stack.used < result.stack.size


@pytest.mark.turns(9)
@how_many
@pytest.mark.parametrize("kind", BYTES)
def test_bytes_harmed_on_the_line(models: tuple[Built, Built], tmp_path: Path, kind: str, trials: range) -> None:
    """One byte in a hundred, of everything that is said either way."""
    chunks, repeats = [], 0
    with device(find(BOARD), models[0].program, tmp_path) as found:
        for seed in trials:
            with over(found, seed) as line:
                link = trial(SpoiltTransport(line, BYTES[kind], seed, longest_delay=HELD_UP), models[0], seed)
            chunks.append(link._chunk)
            repeats += link.counters.repeats
    assert repeats > len(trials), "the line was not bad at all"
    if kind != "delayed":
        assert min(chunks) < 256, "chunks get smaller until they go through"


@how_many
def test_resets_in_the_middle(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """At any operation after the greeting, and up to a run's length later. The sample is begun anew."""
    restarted = 0
    with device(find(BOARD), models[0].program, tmp_path) as found:
        usual = trial(found.line, models[0], OTHER).counters.requests
        for seed in trials:
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
            restarted += link.counters.requests > usual
            assert timers, f"seed {seed}: it was over before operation {when}"
    assert restarted > len(trials) / 2


@how_many
def test_garbage_at_boot(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """A line that is being plugged in makes noise both ways, while the board starts."""
    with device(find(BOARD), models[0].program, tmp_path) as found:
        for seed in trials:
            chance = random.Random(seed)
            with over(found, seed) as line:
                found.reset()
                line.write(chance.randbytes(chance.randrange(600)))
                noisy = SpoiltTransport(line, NO_FAULTS, seed)
                noisy.hear(chance.randbytes(chance.randrange(600)))
                trial(noisy, models[0], seed)


@dataclass
class Replugged(Transport):
    """Another board takes the place of the first one, in the middle of the talk."""

    first: Transport
    second: Transport
    at: int
    operations: int = 0
    name: str = "replugged"

    @property
    def _line(self) -> Transport:
        self.operations += 1
        return self.first if self.operations < self.at else self.second

    def write(self, data: bytes) -> None:
        self._line.write(data)

    def read(self, timeout: float) -> bytes:
        return self._line.read(timeout)

    def close(self) -> None:
        pass


@how_many
def test_the_wrong_model(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """From the start, or from any operation on: what it computes is never taken for ours."""
    board, refused = find(BOARD), 0
    with device(board, models[0].program, tmp_path) as ours, device(board, models[1].program, tmp_path) as other:
        for seed in trials:
            line = Replugged(ours.line, other.line, random.Random(seed).randrange(60) if seed % 4 else 0)
            try:
                trial(line, models[0], seed)
            except WrongFirmware as error:
                refused += 1
                assert "Flash the" in str(error)
            except NnbuildError as error:
                words = str(error)
                told = ("restarted", "arrived altered", "arrived corrupted")
                assert any(cause in words for cause in told), f"seed {seed}: {words}"
            else:
                assert line.operations > 30 and seed % 4, f"seed {seed}"
    assert refused >= len(trials) / 4  # those from the start; of the others, as many as the time of their answers lets


@how_many
def test_the_cable_is_pulled(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """At every operation of a session: the emulator is gone, the port is gone, or our own end is closed."""
    board, operations, told = find(BOARD), 0, 0
    for seed in trials:
        with device(board, models[0].program, tmp_path) as found, over(found, seed // 2) as line:
            if not operations:
                operations = 2 * trial(line, models[0], OTHER).counters.requests  # each is sent and answered
            pull = found.unplug if line is found.line and seed % 2 else found.kill
            at = 1 + seed % (operations - 2)
            spoilt = SpoiltTransport(line, NO_FAULTS, seed, lambda count: pull() if count == at else None)  # noqa: B023
            try:
                trial(spoilt, models[0], seed)  # all may have arrived before: then it is right, and that is fine
            except TransportClosed as error:
                told += 1
                assert " while " in str(error) and error.exit_code == 3, f"seed {seed}: {error}"
    assert told > len(trials) / 2


SILENT = r"does not answer while .*: (nothing comes back|only corrupted frames come back)"
"""The second where it stops in the middle of a reply."""


@how_many
def test_silence(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """The board stops saying anything, at any operation; when it wakes up, old replies do no harm."""
    with device(find(BOARD), models[0].program, tmp_path) as found:
        for seed in trials:
            at = random.Random(seed).randrange(1, 25)
            with over(found, seed) as line:
                silent = SpoiltTransport(line, NO_FAULTS, seed, lambda count: found.freeze() if count == at else None)  # noqa: B023
                with pytest.raises(DeviceMissing, match=SILENT):
                    trial(silent, models[0], seed, IMPATIENT)
                found.thaw()
                trial(line, models[0], OTHER + seed)


@how_many
def test_a_port_that_cannot_be_had(models: tuple[Built, Built], tmp_path: Path, trials: range) -> None:
    """It is not there, or it is in use: by a check that goes on unharmed."""
    with device(find(BOARD), models[0].program, tmp_path) as found, on_pty(found.line) as path:
        for seed in trials:
            chance = random.Random(seed)
            at, missing = chance.randrange(1, 25), tmp_path / f"tty{chance.randrange(1000)}"
            refused: list[str] = []

            def meanwhile(count: int) -> None:
                if count == at:  # noqa: B023
                    for wanted in chance.sample([path, str(missing)], 2):  # noqa: B023
                        with pytest.raises(DeviceMissing) as raised:
                            SerialTransport(wanted)
                        refused.append(str(raised.value))  # noqa: B023

            with SerialTransport(path) as line:
                trial(SpoiltTransport(line, NO_FAULTS, seed, meanwhile), models[0], seed)
            assert sorted("Another program is using" in text for text in refused) == [False, True]
            assert sorted("There is no such port" in text for text in refused) == [False, True]


def test_the_whole_check_on_a_bad_line(nnbuild: Nnbuild, models: tuple[Built, Built], tmp_path: Path) -> None:  # noqa: F811
    """As a user runs it, with the patience it has by itself."""
    built = models[0]
    with ExitStack() as stack:
        found = stack.enter_context(device(find(BOARD), built.program, tmp_path))
        harm = Faults(0.002, 0.002, 0.002, 0.002, 0.002)
        port = stack.enter_context(on_pty(SpoiltTransport(found.line, harm, 1)))
        model = str(built.compiled.options.model)
        options = ("--board", BOARD, "--quantize", "int8", "--program", str(built.program))
        said = nnbuild("check", model, *options, "--port", port, "--layers")
    assert said.status == 0, said.out + said.err
    assert "PASS: 21 samples" in said.out
