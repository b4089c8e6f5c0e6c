"""Every float kernel, compiled with warnings as errors and sanitizers, against the float64 reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.batch import SANITIZED, Entry, run_batch
from tests.support.compiled import SANITIZE
from tests.support.many import run_many
from tests.support.recurrent import LAYERS, masked

pytestmark = pytest.mark.slow

CASES = dict(cases())
SHARES = 16


def samples(graph: Graph, positive: bool, count: int = 3) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(1)
    values = {name: chance.normal(scale=2.0, size=(count, *graph.tensors[name].shape)) for name in graph.inputs}
    return {name: (np.abs(v) + 0.2 if positive else v).astype(np.float32) for name, v in values.items()}


@pytest.mark.turns(3)
@pytest.mark.parametrize("share", range(SHARES))
def test_kernels_agree_with_the_reference(share: int, tmp_path: Path) -> None:
    """One compilation for all: starting the compiler for each takes longer than all the rest."""
    names = list(CASES)[share::SHARES]
    graphs = [CASES[name]() for name in names]
    runs = [(graph, samples(graph, name.endswith("positive"))) for name, graph in zip(names, graphs, strict=True)]
    results = run_many(runs, tmp_path, flags=SANITIZE)
    for name, (graph, inputs), found in zip(names, runs, results, strict=True):
        wanted = interpret.run(graph, inputs, "float64")
        for output in graph.outputs:
            np.testing.assert_allclose(found[output], wanted[output], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", ["c99", "sse2", "avx512", "armv7em_dsp", "mve", "neon", "rvv"])
def test_masked_steps_are_left_out(name: str, tmp_path: Path) -> None:
    """Units in one part of a vector, and in many vectors."""
    target, entries = Target(isas()[name], features=frozenset({"arm_fpu"}), alignment=64), []
    for units in (5, 33):
        for layer in LAYERS.values():
            graph = masked(replace(layer, units=units))
            marks = np.random.default_rng(len(entries)).integers(0, 2, (6, 6)).astype(np.int32)
            given = samples(graph, False, 6) | {"marks": marks}
            entries.append(Entry(make_plan(graph, f"net{len(entries)}", target), given))
    for entry, found in zip(entries, run_batch(entries, tmp_path, (*SANITIZED, "-DNN_PORTABLE")), strict=True):
        wanted = interpret.run(entry.plan.graph, entry.inputs, "float64")
        for output in entry.plan.graph.outputs:
            np.testing.assert_allclose(found[output], wanted[output], rtol=1e-5, atol=1e-5, err_msg=output)
