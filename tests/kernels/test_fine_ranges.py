"""Convolutions with work items of one block of channels per line: equal to the others for any range."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas
from nnbuild.kernels.loops import fine_ranges
from nnbuild.kernels.registry import variants
from nnbuild.ops import interpret
from nnbuild.ops.site import site_of
from nnbuild.plan.plan import Plan
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_float import samples
from tests.kernels.test_variants import graph_of, runs_here
from tests.support import many
from tests.support.quantized import full_range

pytestmark = pytest.mark.slow

MOST = 8
"""Cases at most, so that compiling takes seconds."""


FLOATS = [("sse2", "sse2_cut", "float", False), ("sse2", "sse2_cut", "float", True)]
WIDE = [("avx512", "avx512_cut", "float", True)]
INTEGERS = [("avx2_fma", "avx2_fma_integers_cut", form, form == "int8") for form in ("int8", "int16")]


@pytest.mark.parametrize(("name", "chosen", "form", "apart"), [*FLOATS, *WIDE, *INTEGERS])
def test_fine_ranges_equal_whole_lines(
    name: str, chosen: str, form: str, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isa = isas()[name]
    if not runs_here(isa):
        pytest.skip(f"this processor has no {name}")
    changed = []

    def by_work_items(plan: Plan) -> Artifact:
        made = emit(plan)
        whole = made.files[f"{plan.prefix}.c"].decode()
        text = re.sub(
            r"(\w+)\((.*), 0, (\d+)\);", r"for (int32_t piece = \3; piece-- > 0;) \1(\2, piece, piece + 1);", whole
        )
        changed.append(text != whole)
        return replace(made, files={**made.files, f"{plan.prefix}.c": text.encode()})

    monkeypatch.setattr(fine_ranges, "LONG_LINE", 0)
    if apart:
        monkeypatch.setattr(many, "emit", by_work_items)
    (kernel,) = (each for each in variants("conv2d") if each.name == chosen)
    graphs = (graph_of(case, make, form) for case, make in cases() if case.startswith("conv2d-"))
    target = Target(isa, alignment=64, forced_kernels={"op": kernel.name})
    fitting = [graph for graph in graphs if graph and refusal(kernel, site_of(graph, graph.ops[0]), target) is None]
    assert fitting
    drawn = partial(samples, positive=False) if form == "float" else partial(full_range, count=3, seed=4)
    runs = [(graph, drawn(graph)) for graph in fitting[:MOST]]
    found = many.run_many(runs, tmp_path, targets=[target] * len(runs))
    assert not apart or all(changed)
    for (graph, inputs), outputs in zip(runs, found, strict=True):
        wanted = interpret.run(graph, inputs, *(["float64"] if form == "float" else []))
        near = 1e-5 if form == "float" else 0
        for output in graph.outputs:
            np.testing.assert_allclose(outputs[output], wanted[output], rtol=near, atol=near)
