"""The hardware description against its Python model: lint, directed cases, streams of random tasks, coverage."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.shares import in_shares
from tests.systolic.directed import DIRECTED
from tests.systolic.simulated import (
    Simulated,
    device,
    extent,
    got,
    load,
    needs_verilator,
    random_inputs,
    random_task,
    triple,
)

TASKS = 300
SHARES = 115
"""300 operations a share, each loaded and stored: 115 shares are 103,500 tasks."""


def test_what_is_generated_is_up_to_date() -> None:
    for path, text in load("generate").files().items():
        assert path.read_text() == text, f"{path.name}: run devices/systolic/generate.py"


def test_a_descriptor_has_64_bytes() -> None:
    assert sum(bits for _, bits in device().DESCRIPTOR) == 512


@needs_verilator
@pytest.mark.parametrize("lanes", [8, 16])
def test_verilator_has_nothing_to_say(lanes: int) -> None:
    assert load("build").lint(lanes) == ""


@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize("case", DIRECTED, ids=lambda case: case.__name__)
def test_directed(case: Callable[[Simulated], None]) -> None:
    with Simulated() as sim:
        case(sim)


@needs_verilator
@pytest.mark.slow
@in_shares(SHARES)
def test_random_tasks(share: int) -> None:
    with Simulated(latency=8 if share == 0 else 1 + share % 23) as sim:
        streamed(sim, share, TASKS)


@needs_verilator
@pytest.mark.full
def test_an_array_of_16_by_16() -> None:
    with Simulated(lanes=16) as sim:
        streamed(sim, 1, TASKS)


def streamed(sim: Simulated, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    lanes = sim.d.LANES
    while count > 0:
        task = random_task(rng, lanes)
        if sum(extent(each) + lanes for each in (*task.inputs, task.output)) > sim.d.SCRATCH_BYTES:
            continue
        inputs = random_inputs(rng, task)
        descriptors, at, _ = triple(task, inputs, sim, 0, 0)
        assert sim.run(descriptors, 1 << 19) == 0, task
        assert np.array_equal(got(sim.memory, at, task.output), sim.d.compute(task, inputs)), task
        count -= 1


@needs_verilator
@pytest.mark.full
def test_lines_of_the_hardware_are_covered(tmp_path: Path) -> None:
    """By the directed cases and a stream: at least 95 of 100 lines and branches must be, and all were at last."""
    data = tmp_path / "coverage.dat"
    with Simulated(coverage=True) as sim:
        for case in DIRECTED:
            case(sim)
            sim.fault(0)
            sim.reset()
            sim.write("ctrl", 1 | 8)
        streamed(sim, 0, 400)
        sim.coverage(data)
    lines = tmp_path / "lines"
    command = ["verilator_coverage", "--annotate", str(lines), "--annotate-min", "1", str(data)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(said)
    missed = [line for file in sorted(lines.glob("*.sv")) for line in file.read_text().splitlines() if line[:2] == "%0"]
    found = re.search(r"Total coverage \((\d+)/(\d+)\)", said)
    assert found
    assert int(found[2]) > 300
    assert int(found[1]) >= 0.95 * int(found[2]), "\n".join(missed)
