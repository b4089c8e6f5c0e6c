"""Sums, pools and normalizations of thousands of equal floats are as near as those of a few, on every set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.campaign import FEATURES
from nnbuild.isa.registry import isas
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.log_softmax import LogSoftmax
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.tolerance import standards
from nnbuild.ops.unit_length import UnitLength
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.batch import Entry, run_batch
from tests.support.graphs import single

LONG = [
    (Reduce("mean", 0, 2), (112, 112, 3)),
    (Reduce("mean", 1, 1), (3, 20001)),
    (Reduce("sum", 0, 1), (9000, 35)),
    (Softmax(0, 1), (3723,)),
    (Softmax(0, 1), (30001,)),
    (LogSoftmax(), (30001,)),
    (Pool2D("average", (56, 56), (1, 1)), (57, 58, 3)),
    (Pool2D("average", (112, 112), (8, 8), ((60, 60), (60, 60))), (113, 112, 5)),
    (Pool2D("average", (1, 4000), (1, 50)), (2, 4100, 9)),
    (UnitLength(), (2, 9000)),
    (LayerNorm(count=1), (2, 4000)),
    (LayerNorm(count=2), (2, 100, 33)),
    (LayerNorm(count=1, centred=False), (3, 20001)),
]


@pytest.mark.slow
@pytest.mark.turns(9)
@pytest.mark.parametrize("name", ["c99", "sse2", "avx2_fma", "avx512", "neon", "mve", "rvv256"])
def test_many_equal_numbers(name: str, tmp_path: Path) -> None:
    entries = []
    for index, (attributes, shape) in enumerate(LONG):
        equal = [np.full(shape, value, np.float32) for value in (0.1, 0.7, -0.3)]
        x = np.stack([*equal, np.random.default_rng(1).normal(size=shape).astype(np.float32)])
        target = Target(isas()[name], features=FEATURES, alignment=64)
        entries.append(Entry(make_plan(single(attributes, [shape]), f"m{index}", target), {"x0": x}))
    for entry, found in zip(entries, run_batch(entries, tmp_path, ("gcc", "-O2", "-DNN_PORTABLE")), strict=True):
        wanted = standards(entry.plan.graph, entry.inputs, ["y0"])["y0"]
        off = np.abs(found["y0"].astype(np.float64) - wanted.values).reshape(4, -1).max(1)
        assert (off <= wanted.tolerance).all(), entry.plan.graph.ops[0].attributes


def test_infinity_stays(tmp_path: Path) -> None:
    x = np.ones((1, 3000), np.float32)
    x[0, 100] = np.inf
    entry = Entry(make_plan(single(Reduce("sum", 0, 1), [(3000,)]), "m0", Target(isas()["c99"])), {"x0": x})
    assert run_batch([entry], tmp_path, ("gcc", "-O1"))[0]["y0"] == np.inf
