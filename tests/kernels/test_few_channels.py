"""Layers of few output channels on Cortex-M4, whose inputs are read where they are: exact, chosen where faster, and the
same for every value of the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.parts import residual
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.kernels import test_dsp_chains as chains
from tests.kernels.cases import normal
from tests.kernels.test_variants import PORTABLE, Case, compare, found
from tests.support.emulators import IMAGE, are_here, cortex_m
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

CORE = "armv7em_dsp"
FORMS = ["int8", "int16"]


def plan(graph: Graph, **forced: str) -> Plan:
    return make_plan(graph, "m", Target(isas()[CORE], forced_kernels=forced))


def convolution(filters: int, form: str, dead: bool = False, depth: int = 16) -> Graph:
    kernel = normal(3, 3, depth, filters)
    if dead:
        kernel[..., 0] = 0
    return quantized(single(Conv2D(padding=chains.SAME), [(9, 12, depth)], {"kernel": kernel}), form, seed=1)


def dense(filters: int, form: str, rows: tuple[int, ...] = (), depth: int = 512) -> Graph:
    return quantized(single(Dense(), [(*rows, depth)], {"kernel": normal(depth, filters)}), form, seed=1)


def mine(form: str) -> list[Case]:
    return [case for case in found(form, CORE) if case[1] == "in_place"]


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, "real"])
def test_the_same_bits_as_the_reference(form: str, tmp_path: Path) -> None:
    assert len(mine(form)) > 12
    compare(mine(form), form, tmp_path / "portable", PORTABLE)


@pytest.mark.emulator
@pytest.mark.skipif(not are_here(cortex_m("cortex-m4")), reason="an emulator or compiler of Cortex-M is missing")
@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_by_its_instructions(form: str, tmp_path: Path) -> None:
    compare(mine(form), form, tmp_path / "image", ("-O2", *IMAGE), cortex_m("cortex-m4"))


@pytest.mark.slow
def test_residual_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an odd position is computed twice: its first result may lie where the other operand was."""
    monkeypatch.setattr(residual, "SUM_CYCLES", -50)
    target = Target(isas()[CORE], forced_kernels={"op": "in_place"})
    shapes = [(6, 8, 8, 3, 1, 1), (5, 7, 5, 3, 2, 1), (3, 5, 12, 1, 3, 1), (7, 6, 4, 3, 1, 2)]
    runs = []
    for seed, shape in enumerate(shapes):
        for turned, function in ((False, "add"), (True, "subtract")):
            graph = chains.chain(shape, function, turned, seed)
            assert [step.kind for step in make_plan(graph, "m", target).steps] == ["conv2d + binary"]
            runs.append((graph, full_range(graph, 5, seed)))
    results = run_many(runs, tmp_path, targets=[target] * len(runs))
    for (graph, inputs), result in zip(runs, results, strict=True):
        np.testing.assert_array_equal(result["total"], interpret.run(graph, inputs)["total"])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_it_is_chosen_for_few_channels_only(form: str) -> None:
    for filters, wanted in ((1, True), (2, True), (16, False)):
        for graph in (convolution(filters, form), dense(filters, form), dense(filters, form, (40,), 32)):
            assert (plan(graph).steps[0].kernel_name == "in_place") == wanted, (graph.ops[0].kind, filters)


@pytest.mark.parametrize("form", FORMS)
def test_a_dead_channel_takes_the_same_kernel(form: str) -> None:
    for filters in (1, 2):
        assert plan(convolution(filters, form, dead=True)).steps[0].kernel_name == "in_place"


@pytest.mark.parametrize("form", FORMS)
def test_a_last_odd_channel_is_stored_once(form: str) -> None:
    """Of four channels and one, nothing is stored for a sixth."""
    sizes = [sum(array.nbytes for array in plan(dense(n, form), op="patches_wide").constants.values()) for n in (4, 5)]
    assert sizes[1] < 1.26 * sizes[0]


def price(filters: int, form: str, rows: tuple[int, ...] = (), depth: int = 512, kernel: str = "in_place") -> float:
    return plan(dense(filters, form, rows, depth), op=kernel).steps[0].choice.price.cycles


def test_last_bytes_are_read_one_by_one() -> None:
    """Three bytes would take five instructions to join, and two to part: more than four, of one word, do."""
    assert price(2, "int8", (200,), 7) < 1.05 * price(2, "int8", (200,), 8)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_reads_the_weights_of_three_channels_four_words_at_a_time(form: str) -> None:
    assert price(7, form, kernel="patches_wide") < 0.925 * price(8, form, kernel="patches_wide")
