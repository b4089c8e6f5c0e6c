"""Cores of emulated boards that hang or take a fault wherever they meet: an error in time, and the next start works."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.registry import backend_of
from nnbuild.board.board import Board
from nnbuild.device.description import ModelInfo
from nnbuild.device.link import Link
from nnbuild.device.problems import DeviceFault
from nnbuild.device.session import Sample, open_model, run_samples
from nnbuild.jobs.job import build_program, place, samples_for
from nnbuild.jobs.pipeline import Compiled, Options, compile_model

pytestmark = pytest.mark.emulator

HERE = Path(__file__).parent
MNIST = HERE.parents[1] / "examples" / "mnist"
PLACES = {"rv32-smp": 0x86FFFFF0, "mps2-an521": 0x383FFFF0}
RUNS = 60
"""A core that takes part in one step of a run comes to three points in it."""
TABLE = """\
extends = "{board}"
summary = "{board} with a core that can be stopped"
tested_on = "emulator"
[build]
flags = ["-O2", "-g", "-ffp-contract=off", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-fno-common",
    "-DNN_STOP={place:#x}u", "-include", "{header}"]
[cores]
bound = 1_000
"""


@dataclass(frozen=True)
class Stop:
    core: int
    point: int
    fault: bool


@contextmanager
def stopping(board: Board, program: Path, stop: Stop, address: int) -> Iterator[Link]:
    words = [stop.core, stop.point, int(stop.fault), 0]
    more = [
        word
        for index, value in enumerate(words)
        for word in ("-device", f"loader,addr={address + 4 * index:#x},data={value:#x},data-len=4")
    ]
    assert board.emulator is not None
    emulator = replace(board.emulator, command=(*board.emulator.command, *more))
    line = backend_of(board).open_line(replace(board, emulator=emulator), program, None)
    with line.transport:
        yield Link(line.transport, unit=line.unit)


def survive(link: Link, model: ModelInfo, sample: Sample, wanted: bytes) -> str | None:
    """Runs until the core is lost, then from a new start; what was said of it, or None where it never came to that."""
    for _ in range(RUNS):
        try:
            runs = run_samples(link, model, [sample])
            assert runs.raw[0].tobytes() == wanted
        except DeviceFault as fault:  # within the link's patience, or there would be another error
            link.init()
            again = run_samples(link, model, [sample])
            assert again.raw[0].tobytes() == wanted
            return str(fault)
    return None


def built(name: str, cores: int, folder: Path) -> tuple[Compiled, Path]:
    table = folder / "stopping.toml"
    table.write_text(TABLE.format(board=name, place=PLACES[name], header=HERE / "stop.h"))
    chosen = Options(MNIST / "mnist.h5", str(table), "int8", calibrate=MNIST / "calibration.npz", threads=cores)
    compiled = compile_model(chosen)
    with place(None) as where:
        program = build_program(compiled, where)
        kept = folder / "program.elf"
        shutil.copy(program, kept)
    return compiled, kept


def lose(name: str, cores: int, stops: list[Stop], folder: Path) -> list[str | None]:
    if shutil.which("qemu-system-riscv32" if name == "rv32-smp" else "qemu-system-arm") is None:
        pytest.skip("its emulator is not installed")
    compiled, program = built(name, cores, folder)
    sample = next(iter(samples_for(compiled, None)))
    never = Stop(99, 0, False)
    with stopping(compiled.board, program, never, PLACES[name]) as link:
        wanted = run_samples(link, open_model(link), [sample]).raw[0].tobytes()
        assert np.frombuffer(wanted, np.int8).any()
    found = []
    for stop in stops:
        with stopping(compiled.board, program, stop, PLACES[name]) as link:
            model = open_model(link)
            found.append(survive(link, model, sample, wanted))
    return found


@pytest.mark.parametrize(
    ("name", "cores", "stops"),
    [
        ("rv32-smp", 8, [Stop(3, 9, False), Stop(7, 14, True)]),
        ("mps2-an521", 2, [Stop(1, 11, False), Stop(1, 16, True)]),
    ],
)
def test_a_core_that_is_lost_is_named_and_comes_back(name: str, cores: int, stops: list[Stop], tmp_path: Path) -> None:
    for stop, said in zip(stops, lose(name, cores, stops, tmp_path), strict=True):
        why = "stopped with a fault" if stop.fault else "did not come back within the bound"
        assert said is not None and f"Core {stop.core} {why}" in said


@pytest.mark.full
@pytest.mark.parametrize(("name", "cores", "count"), [("rv32-smp", 8, 100), ("mps2-an521", 2, 50)])
def test_cores_lost_at_random_points(name: str, cores: int, count: int, tmp_path: Path) -> None:
    draw = random.Random(5)
    stops = [Stop(draw.randrange(1, cores), draw.randrange(4, 60), draw.random() < 0.3) for _ in range(count)]
    found = lose(name, cores, stops, tmp_path)
    assert None not in found
