"""Slices that move runs of bytes by words, also down within the memory of their input: exact in every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Array, Graph, Op, Shape, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.slice import Slice
from nnbuild.plan.plan import Plan, Step, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.rewrite import rewrite
from tests.support.batch import SANITIZED, Entry, run_written, write_batch
from tests.support.emulators import CROSS, NARROW, are_here
from tests.support.quantized import full_range

SETS = {"armv7em_dsp": "by_fours", "armv6m": "by_fours_short", "rv32im": "by_words"}
CASES = [  # the input, and where the slice begins in it
    ((1, 80), (0, 40)),
    ((5, 44), (0, 24)),
    ((4, 6, 20), (0, 3, 0)),
    ((3, 100), (1, 0)),
    ((4, 52), (2, 4)),
]


def sliced(shape: Shape, begins: Shape) -> Graph:
    """The end of every axis, between functions, so that no one else needs the slice's input and output."""
    counts = tuple(size - begin for size, begin in zip(shape, begins, strict=True))
    part = Slice(begins, (1,) * len(shape), counts)
    steps: tuple[tuple[str, Attributes], ...] = (("h", Activation("tanh")), ("s", part), ("y", Activation("tanh")))
    tensors, ops, before = {"x": Tensor("x", shape)}, [], "x"
    for name, attributes in steps:
        tensors[name] = Tensor(name, shape if name == "h" else counts)
        ops.append(Op(name, attributes, (before,), (name,), {}))
        before = name
    return verify(Graph("sliced", tensors, {}, tuple(ops), ("x",), ("y",)))


def drawn(graph: Graph, form: str) -> tuple[Graph, dict[str, Array]]:
    """The graph in a number format, with samples."""
    chance = np.random.default_rng(3)
    given = {name: chance.normal(size=(4, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs}
    if form == "float":
        return graph, given
    graph = rewrite(graph, calibrate(graph, lambda: [given], "minmax", 4), {}, form, False)
    return graph, full_range(graph, 4, seed=3)


def entry(index: int, form: str, isa: str) -> Entry:
    graph, given = drawn(sliced(*CASES[index]), form)
    forced = {op.name: SETS[isa] for op in graph.ops if op.kind == "slice"}
    return Entry(make_plan(graph, f"s{index}_{form}_{isa}", Target(isas()[isa], forced_kernels=forced)), given)


def slice_of(plan: Plan) -> Step:
    (step,) = (step for step in plan.steps if step.op.kind == "slice")
    return step


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "riscv"])
def test_runs_move_down(where: str, tmp_path: Path) -> None:
    compiler, runner = NARROW
    if where == "riscv" and not are_here(NARROW):
        pytest.skip("no compiler or emulator for RISC-V")
    names = list(SETS) if where == "here" else ["rv32im"]
    forms = ("int8", "int16", "float")
    entries = [entry(index, form, isa) for index in range(len(CASES)) for form in forms for isa in names]
    assert all(slice_of(each.plan).shares_storage for each in entries)
    write_batch(entries, tmp_path)
    tool = (list(SANITIZED), []) if where == "here" else ([*compiler.split(), *CROSS], runner.split())
    for each, values in zip(entries, run_written(entries, tmp_path, *tool), strict=True):
        wanted = interpret.run(each.plan.graph, each.inputs)["y"]
        np.testing.assert_allclose(values["y"], wanted, rtol=1e-5, atol=1e-6, err_msg=each.plan.prefix)


@pytest.mark.parametrize(("isa", "kernel"), list(SETS.items()))
def test_they_are_chosen_for_runs_of_whole_words(isa: str, kernel: str) -> None:
    def chosen(shape: Shape, begins: Shape) -> str:
        graph, _ = drawn(sliced(shape, begins), "int8")
        return slice_of(make_plan(graph, "chosen", Target(isas()[isa]))).kernel_name

    assert chosen((5, 44), (0, 24)) == kernel
    assert chosen((5, 44), (0, 22)) == "scalar"  # not from whole words on
    assert chosen((5, 20), (0, 8)) == "scalar"  # short
