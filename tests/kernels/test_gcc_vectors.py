"""What gcc does to vector operations: their meanings stay bit-exact at the highest level, and their spellings compile
without warnings at the lowest."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas
from nnbuild.ops import interpret
from nnbuild.ops.reduce import Reduce
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_integer_recurrent import extreme, quantized
from tests.kernels.test_variants import FORMATS, found
from tests.support.batch import Entry, run_batch
from tests.support.compiled import STRICT
from tests.support.graphs import single


@pytest.mark.parametrize("name", ["sse2", "avx512", "neon"])
def test_sums_of_lanes_at_the_highest_level(name: str, tmp_path: Path) -> None:
    """gcc 12 lost such sums at -O3."""
    graph = quantized(single(Reduce("mean", 0, 1, True), [(16, 8)]), "int8")
    plan = make_plan(graph, "net", Target(isas()[name], forced_kernels={"op": f"{name}_integers"}))
    inputs = extreme(graph, 6)
    (outputs,) = run_batch([Entry(plan, inputs)], tmp_path, ("gcc", "-O3", "-DNN_PORTABLE"))
    wanted = interpret.run(graph, inputs)
    for output in graph.outputs:
        np.testing.assert_array_equal(outputs[output], wanted[output])


@pytest.mark.turns(18)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"), [*product(("sse2", "avx2_fma", "avx512"), FORMATS), ("avx512_vnni", "int8"), ("avx_vnni", "int8")]
)
def test_spellings_without_optimization(name: str, form: str, tmp_path: Path) -> None:
    """Intrinsics are macros there, whose conversions show. One case of every kind of operation."""
    plans = {(graph.ops[0].kind, kernel): (graph, target) for _, kernel, graph, target in found(form, name)}
    files = []
    for number, (graph, target) in enumerate(plans.values()):
        folder = tmp_path / str(number)
        emit(make_plan(graph, "net", target)).write(folder)
        files.append(folder / "net_kernels.c")
    command = ["gcc", "-O0", *STRICT, "-fsyntax-only", *map(str, files)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
