"""What makes a model safe in a kernel; every test is held against a build that lacks just that."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nnbuild.backends.kmod.guest import Outcome
from tests.kmod.workshop import FLOAT, INTEGER, SHARED, Recipe, Workshop, try_models, with_extra

pytestmark = pytest.mark.kernel

NAIVE_STACK = "-mpreferred-stack-boundary=4"
NO_SECTIONS = "-DNN_WITHOUT_FPU_SECTIONS"
NO_CHUNKS = "-DNN_WITHOUT_CHUNKS"
SPILL = """\
typedef float four __attribute__((vector_size(16)));

/* Vectors that must lie on the stack, as in a kernel that has more of them than there are registers. */
static __attribute__((__noinline__)) void spill(void)
{
    volatile four kept = {1.0f, 2.0f, 3.0f, 4.0f};

    kept = kept + kept;
}

"""


def numbers(outcome: Outcome, pattern: str) -> list[int]:
    found = re.search(pattern, outcome.log)
    assert found is not None, outcome.log[-3000:]
    return [int(part) for part in found.groups()]


def wrong(outcome: Outcome) -> int:
    return numbers(outcome, r"nn_try: \w+ done, wrong (\d+)")[0]


def spilling(folder: Path) -> None:
    """Adds aligned vectors on the stack to every part of the model."""
    path = folder / "f_bridge.c"
    text = path.read_text()
    text = text.replace("void nn_model_part(", SPILL + "void nn_model_part(", 1)
    path.write_text(text.replace("    switch (step) {", "    spill();\n    switch (step) {", 1))


SPILLING = replace(FLOAT, edit=spilling)


@pytest.mark.turns(4)
def test_any_alignment_of_the_stack(workshop: Workshop) -> None:
    outcome = try_models(workshop, SPILLING, "shift")
    assert outcome.passed, outcome.log[-3000:]
    assert [int(n) for n in re.findall(r"nn_try: shift (\d+) done", outcome.log)] == [0, 8, 16, 24, 40, 56]
    assert wrong(outcome) == 0


@pytest.mark.full
def test_a_build_that_trusts_the_stack_crashes(workshop: Workshop) -> None:
    outcome = try_models(workshop, with_extra(SPILLING, NAIVE_STACK, "NN_MODEL_EXTRA"), "shift")
    assert not outcome.passed
    assert "general protection fault" in outcome.log


@pytest.mark.full
def test_registers_survive(workshop: Workshop) -> None:
    outcome = run_registers(workshop, FLOAT, 100_000)
    assert outcome.passed, outcome.log[-3000:]
    assert corrupted(outcome) == 0


def test_registers_survive_for_a_while(workshop: Workshop) -> None:
    outcome = run_registers(workshop, FLOAT, 5_000)
    assert outcome.passed, outcome.log[-3000:]
    assert corrupted(outcome) == 0


@pytest.mark.full
def test_registers_do_not_survive_without_sections(workshop: Workshop) -> None:
    assert corrupted(run_registers(workshop, with_extra(FLOAT, NO_SECTIONS), 1_000)) > 100


def run_registers(workshop: Workshop, recipe: Recipe, switches: int) -> Outcome:
    built = workshop.build(recipe)
    script = f"""\
insmod /nn_f.ko || verdict f is not loaded
/registers /dev/nn_f 16 {switches}
rmmod nn_f || verdict f is not unloaded
verdict passed
"""
    return workshop.run(built, {"/registers": workshop.program("registers")}, script, 240.0)


def corrupted(outcome: Outcome) -> int:
    found = re.findall(r"registers: ymm (\d+) calls, (\d+) switches, (\d+) corrupted", outcome.log)
    assert len(found) == 2, outcome.log[-3000:]
    return sum(int(entry[2]) for entry in found)


STRESS = r"threads (\d+) refused (\d+), softirq (\d+) refused (\d+), hardirq (\d+) refused (\d+)"


@pytest.mark.turns(3)
@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.full)])
def test_every_context_at_once(workshop: Workshop, seconds: int) -> None:
    outcome = try_models(workshop, FLOAT, "stress", seconds=seconds, processors=4, patience=200.0 + seconds)
    assert outcome.passed, outcome.log[-3000:]
    assert wrong(outcome) == 0
    threads, _, soft, _, hard, refused = numbers(outcome, STRESS)
    assert min(threads, soft, hard) > 50 * seconds
    assert refused > 0, "a float model has to be refused in a hardirq now and then"


@pytest.mark.full
def test_results_are_wrong_without_sections(workshop: Workshop) -> None:
    outcome = try_models(workshop, with_extra(FLOAT, NO_SECTIONS), "stress", seconds=4, processors=4)
    assert wrong(outcome) > 0


LONG = Recipe("f", SHARED / "kws_ref_model.h5")
WAKING = r"a run took up to (\d+) ns, the worst wake-up (\d+) ns"
SLOW = "shift=2,sleep=off"
"""Four nanoseconds an instruction, always the same: a processor of 250 MHz."""


@pytest.fixture
def long_model() -> Recipe:
    if not LONG.model.is_file():
        pytest.skip(f"{LONG.model.name} is not here")
    return LONG


def lstm_file(path: Path, units: int = 64, inputs: int = 32, steps: int = 200) -> Path:
    """A network whose one layer takes more than 10 milliseconds of that processor."""
    rng = np.random.default_rng(3)
    shapes = {"W": (1, 4 * units, inputs), "R": (1, 4 * units, units), "B": (1, 8 * units)}
    made = {name: (rng.normal(size=shape) * 0.15).astype(np.float32) for name, shape in shapes.items()}
    held = [numpy_helper.from_array(each, name) for name, each in (made | {"axis": np.array([0])}).items()]
    nodes = [
        helper.make_node("LSTM", ["x", *shapes], ["", "last"], hidden_size=units),
        helper.make_node("Squeeze", ["last", "axis"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [steps, 1, inputs]), ("y", [1, units]))
    ]
    graph = helper.make_graph(nodes, "lstm", *ends, held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", ["pretrainedResnet.h5", "kws_ref_model.h5", "lstm.onnx"])
def test_others_wake_in_time(workshop: Workshop, name: str, tmp_path: Path) -> None:
    model = lstm_file(tmp_path / name) if name == "lstm.onnx" else SHARED / name
    if not model.is_file():
        pytest.skip(f"{name} is not here")
    outcome = try_models(workshop, Recipe("f", model), "latency", icount=SLOW, patience=480.0)
    assert outcome.passed, outcome.log[-3000:]
    run, late = numbers(outcome, WAKING)
    print(f"{name}: a run took up to {run} ns, the worst wake-up {late} ns")
    assert run > 10_000_000
    assert late <= 200_000


@pytest.mark.full
def test_others_wait_without_chunks(workshop: Workshop, long_model: Recipe) -> None:
    outcome = try_models(workshop, with_extra(long_model, NO_CHUNKS), "latency", icount=SLOW, patience=240.0)
    assert numbers(outcome, WAKING)[1] > 2_000_000


@pytest.mark.turns(2)
def test_callers_that_may_not_wait(workshop: Workshop) -> None:
    outcome = try_models(workshop, FLOAT, "atomic")
    assert outcome.passed, outcome.log[-3000:]
    assert re.findall(r"nn_try: atomic (\w) (-?\d+)", outcome.log) == [("f", "0"), ("i", "0")]


def test_a_model_of_integers_uses_no_fpu(workshop: Workshop) -> None:
    kbuild = (workshop.build(INTEGER).folder / "Kbuild").read_text()
    assert "NN_FPU" not in kbuild and "-msse" not in kbuild
