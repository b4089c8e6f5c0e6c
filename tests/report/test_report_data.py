"""What is gathered of a build agrees with the plan, with the objects and with the check."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nnbuild import cli
from nnbuild.jobs import plan_view
from nnbuild.jobs.job import place
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.report_data import Run, gather_report
from nnbuild.report.facts import Buffer, Facts, from_object
from tests.cli.conftest import forked, recurrent
from tests.frontend.keras_files import dense, h5_bytes, input_layer, layer, put, random_arrays, sequential

STACK = re.compile(rb"[\d,]+(?= of [\d,]+ bytes(\.| used)| bytes used, static)")
"""How deep the stack was in a run: it depends on when the host's bytes arrive."""

__all__ = ["forked", "recurrent"]  # fixtures
ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "examples" / "mnist"


def gathered(options: Options, run: Run) -> Facts:
    with place(None, None) as where:
        return gather_report(options, run, where)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_model(Options(MNIST / "mnist.h5", quantize="int8", calibrate=MNIST / "calibration.npz"))


def covered(buffers: list[Buffer]) -> int:
    return len({byte for b in buffers for byte in range(b.offset, b.offset + b.size)})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"optimize": "ram"}, {"threads": 3}, {"board": "stm32"}])
def test_the_buffers_are_the_plans(compiled: Compiled, options: dict[str, Any]) -> None:
    plan = compile_model(replace(compiled.options, **options)).plan
    buffers = plan_view.buffers(plan)
    assert max(b.offset + b.size for b in buffers) <= plan.arena
    assert plan.peak is not None
    alive = [b for b in buffers if b.first <= plan.peak.step <= b.last]
    shown = plan_view.peak(plan)
    assert shown is not None and {b.name for b in alive} == set(shown.alive)
    assert len(shown.alive) == len(plan.peak.alive)
    assert covered(alive) == plan.peak.size
    names = [b.name for b in buffers]
    assert len(names) == len(set(names))


def test_only_what_a_step_may_write_over_overlaps(compiled: Compiled) -> None:
    buffers = {b.name: b for b in plan_view.buffers(compiled.plan)}
    for a in buffers.values():
        for b in (buffers[name] for name in a.overlaps):
            early, late = sorted((a, b), key=lambda buffer: buffer.first)
            assert late.first == early.last
            step = compiled.plan.steps[late.first]
            assert step.shares_storage
            assert late.name in (step.layer, *step.outputs)


def test_the_layers_are_the_plans(compiled: Compiled) -> None:
    plan = compiled.plan
    code = {step.function: 10 + index for index, step in enumerate(plan.steps)}
    helper = {f"{plan.steps[0].function}_kernel": 7, "shared_by_several": 100}
    rows = plan_view.layers(plan, None, code | helper)
    assert [row.code for row in rows] == [17, *list(code.values())[1:]]
    assert [row.macs for row in rows] == [step.macs for step in plan.steps]
    assert [row.kernel for row in rows] == [row.options[0].kernel for row in rows]
    assert sum(node.share for node in plan_view.nodes(plan, rows)) == pytest.approx(1)


def test_the_picture_has_every_operation(compiled: Compiled) -> None:
    nodes = plan_view.nodes(compiled.plan, plan_view.layers(compiled.plan, None, {}))
    assert len(nodes) == len(compiled.graph.inputs) + len(compiled.graph.ops)
    assert [node.is_output for node in nodes].count(True) == 1
    assert nodes[1].sources == (0,)
    assert (nodes[1].name, nodes[1].kind, nodes[1].detail) == ("stem_conv", "conv2d", "3×3 /2 relu")  # noqa: RUF001


@pytest.mark.slow
def test_several_inputs_and_outputs(forked: Path) -> None:
    facts = gathered(Options(forked), Run(wanted=False))
    assert [node.kind for node in facts.nodes].count("input") == 2
    assert [node.name for node in facts.nodes if node.is_output] == ["both", "head"]
    assert {b.role for b in facts.buffers} >= {"input", "output"}


def test_a_run_has_an_edge_before_and_after(tmp_path: Path) -> None:
    """Inputs are there before the first step, outputs after the last one, also when these are only reshaped."""
    reshaped = layer("Reshape", "grid", target_shape=[3, 2])
    config = sequential(input_layer("x", [4]), dense("dense", 6), reshaped)
    model = put(tmp_path / "grid.h5", h5_bytes(config, {"dense": random_arrays((4, 6), (6,))}))
    given, made = plan_view.buffers(compile_model(Options(model)).plan)
    assert (given.name, given.role, given.first, given.last) == ("x", "input", -1, 0)
    assert (made.role, made.first, made.last) == ("output", 0, 1)


@pytest.mark.slow
def test_state_is_told_apart(recurrent: Path) -> None:
    facts = gathered(Options(recurrent), Run())
    assert facts.state > 0
    assert facts.passed
    assert "state" in {name for memory in facts.memories for name, _ in memory.parts}
    assert all("state" not in b.name for b in facts.buffers)


@pytest.mark.slow
def test_the_figures_are_the_checks() -> None:
    options = Options(MNIST / "mnist.h5", quantize="int8", calibrate=MNIST / "calibration.npz")
    facts = gathered(options, Run(inputs=MNIST / "samples.npz"))
    assert facts.check is not None
    assert facts.passed
    assert facts.accuracy is not None
    assert facts.accuracy > 0.98
    assert facts.quantization is not None
    assert facts.quantization.layers[0].layer == "stem_conv"
    assert sum(size for memory in facts.memories[:1] for _, size in memory.parts) == facts.memories[0].used
    assert 0 < sum(layer.code for layer in facts.layers) <= facts.flash_code
    roles = {file.role for file in facts.origin.files}
    assert roles == {"model", "calibration", "samples", "generated"}


@pytest.mark.turns(4)
@pytest.mark.emulator
def test_an_emulated_board_gives_the_same_bytes_again(tmp_path: Path) -> None:
    pages = []
    for number in (1, 2):
        page, facts = tmp_path / f"{number}.html", tmp_path / f"{number}.json"
        words = [MNIST / "mnist.h5", "--board", "stm32", "--quantize", "int8", "-o", page, "--json", facts]
        assert cli.main(["report", *map(str, words)]) == 0
        pages.append(STACK.sub(b"", page.read_bytes()))
        flash, ram = (memory for memory in from_object(json.loads(facts.read_bytes())).memories if memory.used)
        for memory in (flash, ram):
            assert sum(size for _, size in memory.parts) == memory.used
    assert pages[0] == pages[1]
