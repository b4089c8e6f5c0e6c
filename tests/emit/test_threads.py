"""Large steps in parts at the same time: the same outputs to the bit, and no two threads at one byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.ops import interpret
from nnbuild.plan.cores import Cores
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.compiled import STRICT, build, run
from tests.support.quantized import full_range, quantized

pytestmark = pytest.mark.slow

POOL = FIRMWARE / "cores"
RUNTIME = ("nn_cores.c", "nn_cores_posix.c")
CASES = ("conv2d-0", "conv2d-5", "dense-1", "depthwise-0-1", "pool-max-1", "activation-tanh", "conv2d-outer")


def plan_of(name: str, threads: int, fork: float = 0) -> Plan:
    graph = quantized(dict(cases())[name](), "int8", seed=3, same_scale=name.startswith("pool"))
    return make_plan(graph, "net", Target(cores=Cores(threads, fork)))


def in_parallel(plan: Plan, folder: Path) -> Path:
    """The test's program, with its run spread over the pool and watched by the thread sanitizer."""
    program = build(plan, folder)
    main = folder / "main.c"
    threads = max(step.parts for step in plan.steps)
    text = main.read_text().replace("net_run(&context)", "net_run_parallel(&context, nn_cores_run, 0)")
    text = text.replace("net_init(&context);", f"net_init(&context); nn_cores_start({threads});")
    main.write_text(text.replace('#include "net.h"', '#include "net.h"\n#include "nn_cores.h"'))
    sources = [str(path) for path in (*sorted(folder.glob("*.c")), *(POOL / name for name in RUNTIME))]
    flags = [*STRICT, "-O1", "-g", "-fsanitize=thread", "-pthread", f"-I{folder}", f"-I{POOL}"]
    subprocess.run(["gcc", *flags, *sources, "-o", str(program)], check=True)
    return program


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", CASES)
def test_parts_compute_the_same(name: str, tmp_path: Path) -> None:
    plan = plan_of(name, 4)
    assert plan.parallel
    inputs = full_range(plan.graph, 20, seed=1)
    wanted, found = interpret.run(plan.graph, inputs), run(in_parallel(plan, tmp_path), plan, inputs)
    for output in plan.graph.outputs:
        np.testing.assert_array_equal(found[output], wanted[output])


def test_what_is_small_or_in_sequence_stays_whole() -> None:
    assert not plan_of("conv2d-0", 4, fork=50_000).parallel
    assert not make_plan(dict(cases())["lstm-1"](), "net", Target(cores=Cores(4, 0))).parallel
    assert not plan_of("conv2d-0", 1).parallel


def test_parts_share_nothing_with_their_input() -> None:
    assert plan_of("activation-tanh", 1).arena < plan_of("activation-tanh", 4).arena


def test_a_board_of_one_core() -> None:
    model = Path(__file__).parents[2] / "examples" / "mnist" / "mnist.h5"
    with pytest.raises(UsageError) as caught:
        compile_model(Options(model, "stm32", threads=2))
    assert str(caught.value).startswith("--cores 2: stm32f405 computes on one core.")
