"""Real models on every emulated board: integers equal the host's reference in every bit, floats agree, costs repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.backends.registry import backend_of
from nnbuild.board.tables import find
from nnbuild.device.session import profile_sample, run_samples
from nnbuild.jobs.job import build_program, connected, place, stack_of
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import program_files
from nnbuild.model.samples import SampleSet, load_samples
from nnbuild.ops import interpret
from tests.boards.conftest import EMULATED, MNIST, SHARED, needs_tools

pytestmark = pytest.mark.emulator

SAMPLES = 2


@dataclass(frozen=True)
class Case:
    model: Path
    samples: Path
    calibrate: Path


CASES = {
    "mnist": Case(MNIST / "mnist.h5", MNIST / "samples.npz", MNIST / "calibration.npz"),
    "kws": Case(*(SHARED / f"kws_ref_model{end}" for end in (".h5", "_golden.npz", "_golden.npz"))),
    "resnet8": Case(*(SHARED / f"pretrainedResnet{end}" for end in (".h5", "_golden.npz", "_golden.npz"))),
}
TOO_LARGE = {
    "microbit": {("kws", "float"), ("kws", "int16"), ("resnet8", "*")},
    "stm32f100": {("mnist", "float"), ("mnist", "int16"), ("kws", "*"), ("resnet8", "*")},
}
"""What is known not to fit: there an error is wanted instead."""

TELLING = ("mps2-an386", "mps3-an547", "rv32-smp", "rv32-zve32x")
"""Boards of which each has other kernels or cores."""


def fits(board: str, model: str, quantize: str) -> bool:
    return not {(model, quantize), (model, "*")} & TOO_LARGE.get(board, set())


def is_telling(board: str, model: str, form: str) -> bool:
    """Small models tell the most; others are run where no other board has the same kernels. (In every format, every
    board runs the smallest one: `test_builds.py`.)"""
    if board in TELLING:
        return form == "int8" or model == "mnist"
    return form == "int8" and model != "resnet8"


def is_alone(board: str) -> bool:
    """What a core of several counts holds how long it waited for others."""
    return find(board).cores.count == 1


def compiled_for(board: str, model: str, quantize: str) -> tuple[Compiled, SampleSet]:
    needs_tools(find(board))
    case = CASES[model]
    if not case.model.is_file():
        pytest.skip(f"{case.model} is not there")
    calibrate = None if quantize == "float" else case.calibrate
    compiled = compile_model(Options(case.model, board, quantize, calibrate))
    tensors = compiled.graph.tensors
    inputs, outputs = ([tensors[name] for name in names] for names in (compiled.graph.inputs, compiled.graph.outputs))
    samples = load_samples(case.samples, inputs, outputs)
    return compiled, SampleSet({name: value[:SAMPLES] for name, value in samples.inputs.items()})


@contextmanager
def running(compiled: Compiled) -> Iterator[tuple]:
    with place(None, None) as where:
        program = build_program(compiled, where)
        with connected(compiled, program, None) as (link, model):
            yield link, model, stack_of(compiled, program.parent)


@pytest.mark.turns(12)
@pytest.mark.parametrize(
    ("board", "model", "quantize"),
    [
        pytest.param(board, model, form, marks=() if is_telling(board, model, form) else pytest.mark.full)
        for board in EMULATED
        for model in CASES
        for form in ("float", "int8", "int16")
    ],
)
def test_the_outputs_are_the_references(board: str, model: str, quantize: str) -> None:
    compiled, samples = compiled_for(board, model, quantize)
    if not fits(board, model, quantize):
        with pytest.raises(DoesNotFit):
            program_files(compiled)
        return
    with running(compiled) as (link, info, bound):
        runs = run_samples(link, info, list(samples))
        stack = link.stack()
    wanted = interpret.run(compiled.graph, samples.inputs, "float64")
    for name, raw in zip(compiled.graph.outputs, runs.raw, strict=True):
        if quantize == "float":
            np.testing.assert_allclose(raw, wanted[name], rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(raw, wanted[name])
    forks = backend_of(find(board)).stack.parts if compiled.plan.parallel else 0  # at most
    assert bound - forks <= stack.used <= bound + 512 < stack.size, "the link needs some more than the model"


@pytest.mark.turns(3)
@pytest.mark.parametrize("board", [name for name in TELLING if is_alone(name)])
def test_two_runs_cost_the_same(board: str) -> None:
    compiled, samples = compiled_for(board, "mnist", "int8")
    costs = []
    with place(None, None) as where:
        program = build_program(compiled, where)
        for _ in range(2):
            with connected(compiled, program, None) as (link, info):
                costs.append([profile_sample(link, info, next(iter(samples))) for _ in range(2)])
    assert costs[0] == costs[1], "from one start of the emulator to the next"
    assert costs[0][0] == costs[0][1], "from one run to the next"
    assert min(costs[0][0]) > 0
