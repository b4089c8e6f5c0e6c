"""A softmax over other axes than the last: turned where vectors gain by it, same results, no more memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.softmax import Softmax
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.plan.turned_softmax import LEAST_GAIN, turn_softmaxes
from tests.kernels.test_float import samples
from tests.kernels.test_variants import PORTABLE
from tests.support.compiled import SANITIZE
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

SETS = ("avx2_fma", "mve", "neon", "zve32x")
CASES = (
    (0, 1, (49, 10), ()),
    (1, 1, (3, 32, 5), ()),
    (0, 2, (6, 7, 4), ()),
    (1, 2, (2, 5, 9, 3), ()),
    (0, 1, (33, 4), (2,)),
)
"""Axis, number of axes, shape, outer axes."""
FORMS = ("float", "int8", "int16")


def graphs(form: str) -> list[Graph]:
    made = [single(Softmax(axis, count), [shape], outer=outer) for axis, count, shape, outer in CASES]
    return made if form == "float" else [quantized(graph, form, 1) for graph in made]


def kinds(plan: Plan) -> list[str]:
    return [step.op.kind for step in plan.steps]


TURNED = ["transpose", "softmax", "transpose"]


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SETS)
def test_it_computes_the_same(name: str, form: str, tmp_path: Path) -> None:
    target = Target(isas()[name])
    made = graphs(form)
    plans = [make_plan(graph, "net", target) for graph in made]
    if (name, form) != ("zve32x", "float"):  # its vectors hold integers only
        assert all(kinds(plan) == TURNED and "scalar" not in plan.steps[1].kernel_name for plan in plans)
    for plan in plans:
        verify(plan.graph)
    runs = [(graph, samples(graph, False) if form == "float" else full_range(graph, 4, seed=1)) for graph in made]
    found = run_many(runs, tmp_path, targets=[target] * len(runs), flags=(*SANITIZE, *PORTABLE))
    for (graph, inputs), result in zip(runs, found, strict=True):
        wanted = interpret.run(graph, inputs, *(["float64"] if form == "float" else []))["y0"]
        if form == "float":
            np.testing.assert_allclose(result["y0"], wanted, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(result["y0"], wanted)


@pytest.mark.parametrize("form", FORMS)
def test_it_takes_less_time_and_no_more_memory(form: str) -> None:
    target = Target(isas()["avx2_fma"])
    for graph in graphs(form):
        plan, plain = make_plan(graph, "net", target), make_plan(graph, "net", replace(target, max_ram=1 << 20))
        assert kinds(plain) == ["softmax"]
        cycles, before = (sum(step.choice.price.cycles for step in each.steps) for each in (plan, plain))
        assert cycles < (1 - LEAST_GAIN) * before
        assert plan.arena <= plain.arena


@pytest.mark.parametrize(
    "target",
    [
        Target(),
        Target(isas()["armv7em_dsp"]),
        Target(isas()["avx2_fma"], optimize="size"),
        Target(isas()["avx2_fma"], optimize="ram"),
        Target(isas()["avx2_fma"], max_ram=1 << 20),
        Target(isas()["avx2_fma"], keep_tensors=True),
    ],
    ids=["portable", "no vectors", "size", "ram", "room", "apart"],
)
def test_it_stays_where_turning_gains_nothing_or_more_counts_than_time(target: Target) -> None:
    for graph in graphs("int8"):
        assert turn_softmaxes(graph, target) is graph


def test_the_last_axes_and_small_tensors_stay() -> None:
    target = Target(isas()["avx2_fma"])
    for softmax, shape in ((Softmax(1), (9, 32)), (Softmax(0, 2), (9, 32)), (Softmax(0), (2, 2))):
        graph = quantized(single(softmax, [shape]), "int8", 1)
        assert turn_softmaxes(graph, target) is graph
