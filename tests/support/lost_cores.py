"""Cores of an emulated board that hang or take a fault wherever cores meet, one after the other in one program.

The emulator counts time in instructions, so what a bound is does not depend on how busy this machine is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nnbuild.backends.registry import backend_of
from nnbuild.device.description import ModelInfo
from nnbuild.device.link import Link, Timing
from nnbuild.device.problems import DeviceFault
from nnbuild.device.session import Sample, open_model, run_samples
from nnbuild.jobs.job import build_program, place, samples_for
from nnbuild.jobs.pipeline import Compiled, Options, compile_model

HERE = Path(__file__).parent
MNIST = HERE.parents[1] / "examples" / "mnist"
PLACES = {"rv32-smp": 0x86FFFFE0, "mps2-an521": 0x383FFFE0}
"""Where the words lie that say what is to stop."""
CORES = {"rv32-smp": 8, "mps2-an521": 2}
BOUNDS = {"rv32-smp": 5, "mps2-an521": 50}
"""Milliseconds: of the emulator's own time, and of this PC's."""
RUNS = 90
"""A core that takes part in one step of a run comes to three points in it."""
PATIENT = Timing(first=20, longest=60, patience=600, run_patience=1200)
"""On a machine that is busy with other things; the bound is the program's own."""
TABLE = """\
extends = "{board}"
summary = "{board} with cores that can be stopped"
tested_on = "emulator"
[build]
flags = ["-O2", "-g", "-ffp-contract=off", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-fno-common",
    "-DNN_STOP={place:#x}u", "-include", "{header}"]
[cores]
bound = {bound}
"""


@dataclass(frozen=True)
class Stop:
    core: int
    point: int
    fault: bool

    @property
    def told(self) -> str:
        """How the error begins."""
        return f"Core {self.core} {'stopped with a fault' if self.fault else 'did not come back within the bound'}"

    def explains(self, said: str | None) -> bool:
        return said is not None and (said == TOGETHER or self.told in said)


NEVER = Stop(99, 0, False)
PACED = {"rv32-smp"}
"""Boards whose emulator keeps a time of its own; the serial port of the other loses bytes by it."""
TOGETHER = "in the same step as the one before"
"""Said of a core that is lost where another is: one of them is named, and both are started anew."""


@dataclass(frozen=True, eq=False)
class Stopping:
    """A program for a board, and what it computes when no core is lost."""

    board: str
    compiled: Compiled
    program: Path
    sample: Sample
    wanted: bytes


def drawn(seed: int, others: int) -> Iterator[Stop]:
    """The stops that a program draws from a seed, as stop.h does it."""
    while True:
        seed = (seed * 1664525 + 1013904223) % (1 << 32)
        yield Stop(1 + (seed >> 8) % others, 10 + (seed >> 12) % 60, (seed >> 20) % 10 < 3)


def program(board: str, folder: Path) -> Stopping:
    table = folder / "stopping.toml"
    header = HERE.parent / "cores" / "stop.h"
    table.write_text(TABLE.format(board=board, place=PLACES[board], header=header, bound=BOUNDS[board]))
    data = MNIST / "calibration.npz"
    chosen = Options(MNIST / "mnist.h5", str(table), "int8", calibrate=data, threads=CORES[board])
    compiled, kept = compile_model(chosen), folder / "program.elf"
    with place(None) as where:
        shutil.copy(build_program(compiled, where), kept)
    sample = next(iter(samples_for(compiled, None)))
    made = Stopping(board, compiled, kept, sample, b"")
    with stopping(made, NEVER, 0) as link:
        wanted = computed(link, open_model(link), sample)
    assert np.frombuffer(wanted, np.int8).any()
    return replace(made, wanted=wanted)


def computed(link: Link, model: ModelInfo, sample: Sample) -> bytes:
    return run_samples(link, model, [sample]).raw[0].tobytes()


@contextmanager
def stopping(made: Stopping, stop: Stop, seed: int) -> Iterator[Link]:
    words = [stop.core, stop.point, int(stop.fault), 0, CORES[made.board] - 1, seed]
    more = [
        word
        for index, value in enumerate(words)
        for word in ("-device", f"loader,addr={PLACES[made.board] + 4 * index:#x},data={value:#x},data-len=4")
    ]
    board = made.compiled.board
    assert board.emulator is not None
    pace = ("-icount", "shift=0") if made.board in PACED else ()
    command = board.emulator.command
    counter = command.index("-plugin")
    emulator = replace(board.emulator, command=(*command[:counter], *command[counter + 2 :], *pace, *more))
    line = backend_of(board).open_line(replace(board, emulator=emulator), made.program, None)
    with line.transport:
        yield Link(line.transport, PATIENT, unit=line.unit)


def lose(made: Stopping, first: Stop, count: int, seed: int) -> list[tuple[Stop, str | None]]:
    """The first stop, then those drawn from the seed, all in one program: each with what was said of it, or None where
    it never came to that. After each the program is started anew, and whatever it then computes must be right."""
    found: list[tuple[Stop, str | None]] = []
    draws, stop, runs = drawn(seed, CORES[made.board] - 1), first, 0
    with stopping(made, first, seed) as link:
        model = open_model(link)
        while len(found) < count and runs < RUNS:
            try:
                assert computed(link, model, made.sample) == made.wanted
                runs += 1
            except DeviceFault as fault:
                if found and stop.told not in str(fault):
                    found.append((stop, TOGETHER))
                    stop = next(draws)
                found.append((stop, str(fault)))
                stop, runs = next(draws), 0
                link.init()
    return found if len(found) >= count else [*found, (stop, None)]
