"""Functions at the limits of the float range: the same results on every set, also beyond the clamps of vector forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_variants import runs_here
from tests.support.batch import Entry, run_batch
from tests.support.graphs import single

ENDS = [3.4e38, 3e38, 1e30, 1e5, 104.0, 103.0, 90.0, 88.0, 87.5, 87.0, 80.0, 20.0, 1.0, 1e-20, 1e-45, 0.0]
FUNCTIONS = [("swish", ()), ("sigmoid", ()), ("tanh", ()), ("gelu_tanh", ()), ("hard_swish", ()), ("elu", (1.0,))]
NEAR = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c99", "sse2", "avx2_fma"])
def test_functions_at_the_ends_of_floats(name: str, tmp_path: Path) -> None:
    isa = isas()[name]
    if name != "c99" and not runs_here(isa):
        pytest.skip(f"this processor has no {name}")
    x = np.array([[*ENDS, *(-value for value in ENDS), np.nan]], np.float32)
    graphs = [single(Activation(function, parameters), [x.shape[1:]]) for function, parameters in FUNCTIONS]
    entries = [Entry(make_plan(g, f"m{i}", Target(isa=isa)), {"x0": x}) for i, g in enumerate(graphs)]
    with np.errstate(all="ignore"):
        for graph, found in zip(graphs, run_batch(entries, tmp_path, ("gcc", "-O1")), strict=True):
            wanted = interpret.run(graph, {"x0": x}, "float64")["y0"].astype(np.float32)
            same = (found["y0"] == wanted) | (np.isnan(found["y0"]) & np.isnan(wanted))
            error = np.abs(found["y0"].astype(np.float64) - wanted)
            wrong = ~(same | (error <= NEAR * (1 + np.abs(wanted))))
            assert not wrong.any(), (graph.ops[0].attributes, x[wrong], found["y0"][wrong])
