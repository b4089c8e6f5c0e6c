"""Cores of an emulated board that hang or take a fault wherever they meet: of the program that speaks the link, and
of one that loses many by itself.

The emulator counts time in instructions, so what a bound is does not depend on how busy this machine is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nnbuild.backends.backend import Line
from nnbuild.backends.registry import backend_of
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.link import Link, Timing
from nnbuild.device.session import Sample, open_model, run_samples
from nnbuild.jobs.job import build_program, place, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model

HERE = Path(__file__).parent
MNIST = HERE.parents[1] / "examples" / "mnist"
PLACES = {"rv32-smp": 0x86FFFFE0, "mps2-an521": 0x383FFFE0}
"""Where the words lie that say what is to stop."""
CORES = {"rv32-smp": 8, "mps2-an521": 2}
PATIENT = Timing(first=20, longest=60, patience=600, run_patience=1200)
"""On a machine that is busy with other things; the bound is the program's own."""
PACE = ("-icount", "shift=5")
END = b"\x04"
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
        return f"Core {self.core} {'stopped with a fault' if self.fault else 'did not return within the time limit'}"


NEVER = Stop(99, 0, False)
PACED = {"rv32-smp"}
"""Boards whose serial port takes bytes also where the emulator keeps a time of its own."""


@dataclass(frozen=True, eq=False)
class Stopping:
    """A program for a board, and what it computes when no core is lost."""

    board: str
    compiled: Compiled
    program: Path
    sample: Sample
    wanted: bytes


def options(board: str, folder: Path, paced: bool = True) -> Options:
    """A bound of the emulator's own time may be short."""
    table = folder / "stopping.toml"
    header = HERE.parent / "cores" / "stop.h"
    table.write_text(TABLE.format(board=board, place=PLACES[board], header=header, bound=5 if paced else 5000))
    data = MNIST / "calibration.npz"
    return Options(MNIST / "mnist.h5", str(table), "int8", calibrate=data, threads=CORES[board])


def program(board: str, folder: Path) -> Stopping:
    compiled, kept = compile_model(options(board, folder, board in PACED)), folder / "program.elf"
    with place(None) as where:
        shutil.copy(build_program(compiled, where), kept)
    sample = next(iter(samples_for(compiled, None)))
    made = Stopping(board, compiled, kept, sample, b"")
    with stopping(made, NEVER) as link:
        wanted = computed(link, open_model(link), sample)
    assert np.frombuffer(wanted, np.int8).any()
    return replace(made, wanted=wanted)


def computed(link: Link, model: ModelInfo, sample: Sample) -> bytes:
    return run_samples(link, model, [sample]).raw[0].tobytes()


def opened(compiled: Compiled, program: Path, *more: str) -> Line:
    """The program in its emulator, which does not count for each core."""
    board = compiled.board
    assert board.emulator is not None
    command = board.emulator.command
    counter = command.index("-plugin")
    emulator = replace(board.emulator, command=(*command[:counter], *command[counter + 2 :], *more))
    return backend_of(board).open_line(replace(board, emulator=emulator), program, None)


@contextmanager
def stopping(made: Stopping, stop: Stop) -> Iterator[Link]:
    words = [stop.core, stop.point, int(stop.fault), 0]
    more = [
        word
        for index, value in enumerate(words)
        for word in ("-device", f"loader,addr={PLACES[made.board] + 4 * index:#x},data={value:#x},data-len=4")
    ]
    line = opened(made.compiled, made.program, *(PACE if made.board in PACED else ()), *more)
    with line.transport:
        yield Link(line.transport, PATIENT, unit=line.unit)


def losing(board: str, losses: int, seed: int, folder: Path) -> str:
    """What lost.c says, which loses so many cores in one program."""
    source = folder / "lost.c"
    told = {"LOSSES": losses, "SEED": f"{seed}u", "CORES": CORES[board]}
    defined = "".join(f"#define {name} {value}\n" for name, value in told.items())
    source.write_text(defined + (HERE.parent / "cores" / "lost.c").read_text())
    compiled = compile_model(options(board, folder))
    with place(None) as where:
        built = build_program(compiled, replace(where, own=(source,)))
        with opened(compiled, built, *PACE).transport as transport:
            said = b""
            while END not in said:
                said += transport.read(1)
    return said.partition(END)[0].decode()
