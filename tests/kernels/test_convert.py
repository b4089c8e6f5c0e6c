"""Conversions between number formats: the C against `numeric.edge` and the integer reference, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import WHOLE, Array, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.convert import Convert
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_variants import candidates, emulated, runs_here
from tests.support.compiled import SANITIZE
from tests.support.emulators import CROSS
from tests.support.many import run_many

SCALES = (1.0, 0.1, 1 / 255, 2.0**-7, 3.7e-5, 123.456)
ZEROS = (0, -128, 127, 5)
Format = tuple[str, Quant | None]
FLOAT: Format = ("float32", None)


def conversion(source: Format, target: Format, size: int, once: bool = False) -> Graph:
    tensors = {"x": Tensor("x", (size,), *source), "y": Tensor("y", (size,), *target)}
    return verify(Graph("net", tensors, {}, (Op("op", Convert(once), ("x",), ("y",)),), ("x",), ("y",)))


def formats() -> list[Format]:
    eight = [("int8", Quant((float(np.float32(s)),), z)) for s, z in itertools.product(SCALES, ZEROS)]
    return [*eight, *(("int16", Quant((float(np.float32(s)),))) for s in SCALES)]


def floats(quant: Quant) -> Array:
    """Halves and their neighbours over the whole range, and values far outside."""
    halves = (np.arange(-300, 300) + np.float32(0.5)).astype(np.float32) * np.float32(quant.scale)
    edges = (np.array([-32768.5, -32767.5, 32766.5, 32767.5, 0.49999997, 8388609], np.float32)) * quant.scale
    far = np.array([0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-45], np.float32)
    near = np.concatenate([halves, edges.astype(np.float32)])
    chance = np.random.default_rng(3).normal(scale=100 * quant.scale, size=400).astype(np.float32)
    return np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, -near), far, chance])


def by(kernel: str, runs: Sequence[object]) -> list[Target]:
    return [Target(isas()["c99"], forced_kernels={"op": kernel})] * len(runs)


KERNELS = pytest.mark.parametrize("kernel", ["scalar", "bits"])


@KERNELS
def test_floats_come_in_as_the_edge_says(kernel: str, tmp_path: Path) -> None:
    runs = []
    for dtype, quant in formats():
        assert quant is not None
        values = floats(quant)
        runs.append((conversion(FLOAT, (dtype, quant), len(values)), {"x": values[None]}))
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, targets=by(kernel, runs)), strict=True):
        np.testing.assert_array_equal(found["y"], interpret.run(graph, inputs)["y"])


@KERNELS
def test_nan_becomes_the_smallest(kernel: str, tmp_path: Path) -> None:
    runs = [(conversion(FLOAT, form, 2), {"x": np.full((1, 2), np.nan, np.float32)}) for form in formats()]
    for found, (dtype, _) in zip(run_many(runs, tmp_path, targets=by(kernel, runs)), formats(), strict=True):
        assert (found["y"] == np.iinfo(dtype).min).all()


@KERNELS
def test_integers_go_out_as_the_edge_says(kernel: str, tmp_path: Path) -> None:
    runs = []
    for dtype, quant in formats():
        info = np.iinfo(dtype)
        values = np.arange(info.min, info.max + 1, 1 if dtype == "int8" else 7).astype(dtype)
        runs.append((conversion((dtype, quant), FLOAT, len(values)), {"x": values[None]}))
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, targets=by(kernel, runs)), strict=True):
        wanted = interpret.run(graph, inputs)["y"]
        assert wanted.dtype == np.float32
        np.testing.assert_array_equal(found["y"].view(np.uint32), wanted.view(np.uint32))


@pytest.mark.slow
def test_integers_change_their_scale_as_tflite_does(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    runs = []
    for source, target in itertools.product(formats()[::5], formats()[1::5]):
        info = np.iinfo(source[0])
        values = chance.integers(info.min, info.max + 1, (1, 300)).astype(source[0])
        runs.append((conversion(source, target, 300), {"x": values}))
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path), strict=True):
        np.testing.assert_array_equal(found["y"], interpret.run(graph, inputs)["y"])


@pytest.mark.turns(4)
@pytest.mark.slow
def test_every_set_changes_scales_alike(tmp_path: Path) -> None:
    """Also from one type to the other; ratios above one are refused only where the result would leave 32 bits."""
    chance, runs, targets, seen = np.random.default_rng(0), [], [], set()
    for number, (source, target) in enumerate(itertools.product(formats()[1::3], formats()[::4])):
        info, graph = np.iinfo(source[0]), conversion(source, target, 37)
        values = chance.integers(info.min, info.max + 1, (1, 37)).astype(source[0])
        values[0, :2] = info.min, info.max
        for index, (kernel, on) in enumerate(candidates(graph)):
            taken = index % 3 == number % 3  # each kernel for a third of all pairs
            if taken and kernel.endswith(("_rounded", "high_words", "high_words_many")):
                seen.add(kernel)
                runs.append((graph, {"x": values}))
                targets.append(on)
    assert {k.name for k in variants("convert") if k.name.endswith(("_rounded", "high_words"))} <= seen
    results = run_many(runs, tmp_path, targets=targets, flags=[*SANITIZE, "-DNN_PORTABLE"])
    for (graph, inputs), found in zip(runs, results, strict=True):
        np.testing.assert_array_equal(found["y"], interpret.run(graph, inputs)["y"])


HALVES = [
    ("int8", Quant((0.25,), 7)),
    ("int16", Quant((0.25,))),
    ("int8", Quant((0.75,), -3)),
    ("int16", Quant((3.0,))),
]
"""Scales whose ratios give halves, on both sides of zero."""


@pytest.mark.turns(3)
@pytest.mark.slow
def test_every_set_rounds_once_alike(tmp_path: Path) -> None:
    """Every number of a type, as ONNX converts it."""
    runs, targets, seen = [], [], set()
    pairs = [*itertools.product(HALVES, HALVES), *itertools.product(formats()[1::7], formats()[::9])]
    for source, target in pairs:
        info = np.iinfo(source[0])
        values = np.arange(info.min, info.max + 1).astype(source[0])
        graph = conversion(source, target, len(values), once=True)
        for kernel, on in candidates(graph):
            if kernel.endswith(("_rounded", "high_words", "high_words_many")):
                seen.add(kernel)
                runs.append((graph, {"x": values[None]}))
                targets.append(on)
    assert {k.name for k in variants("convert") if k.name.endswith(("_rounded", "high_words"))} <= seen
    results = run_many(runs, tmp_path, targets=targets, flags=[*SANITIZE, "-DNN_PORTABLE"])
    for (graph, inputs), found in zip(runs, results, strict=True):
        np.testing.assert_array_equal(found["y"], interpret.run(graph, inputs)["y"])


def chain() -> Graph:
    """float -> int16 -> int8 -> int16 -> float, in which any result might overlap its input."""
    kinds = [FLOAT, ("int16", Quant((0.001,))), ("int8", Quant((0.1,), 3)), ("int16", Quant((0.002,))), FLOAT]
    tensors = {f"t{i}": Tensor(f"t{i}", (50,), *kind) for i, kind in enumerate(kinds)}
    ops = [Op(f"op{i}", Convert(), (f"t{i}",), (f"t{i + 1}",)) for i in range(4)]
    return verify(Graph("net", tensors, {}, tuple(ops), ("t0",), ("t4",)))


def test_a_chain_shares_storage_only_where_it_may(tmp_path: Path) -> None:
    """Never where the output is larger, nor where C forbids type aliasing."""
    graph = chain()
    steps = make_plan(graph, "net", Target()).steps
    assert [bool(step.demand.overlaps) for step in steps] == [False, True, False, False]
    inputs = {"t0": np.random.default_rng(2).normal(scale=4, size=(5, 50)).astype(np.float32)}
    (found,) = run_many([(graph, inputs)], tmp_path)
    np.testing.assert_array_equal(found["t4"], interpret.run(graph, inputs)["t4"])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_integer_operations_share_storage(dtype: str, tmp_path: Path) -> None:
    quants = [Quant((0.01 * (i + 1),), 0 if dtype == "int16" else 10 * i) for i in range(4)]
    tensors = {f"t{i}": Tensor(f"t{i}", (40,), dtype, quant) for i, quant in enumerate(quants)}
    functions = ("swish", "leaky_relu", "gelu")
    parameters = ((), (0.3,), ())
    ops = [
        Op(f"op{i}", Activation(f, p), (f"t{i}",), (f"t{i + 1}",))
        for i, (f, p) in enumerate(zip(functions, parameters, strict=True))
    ]
    graph = verify(Graph("net", tensors, {}, tuple(ops), ("t0",), ("t3",)))
    assert make_plan(graph, "net", Target()).arena <= 96
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    inputs = {"t0": np.random.default_rng(2).integers(low, high + 1, (5, 40)).astype(dtype)}
    (found,) = run_many([(graph, inputs)], tmp_path)
    np.testing.assert_array_equal(found["t3"], interpret.run(graph, inputs)["t3"])


def edges() -> list[tuple[Graph, dict[str, Array]]]:
    """Floats that come in and go out, in numbers that leave vectors incomplete; NaNs among them."""
    runs = []
    for dtype, quant in formats()[::5]:
        assert quant is not None
        values = np.append(floats(quant), np.full(2, np.nan, np.float32))
        runs.append((conversion(FLOAT, (dtype, quant), len(values)), {"x": values[None]}))
        info = np.iinfo(dtype)
        steps = np.arange(info.min, info.max + 1, 1 if dtype == "int8" else 7).astype(dtype)[:-1]
        runs.append((conversion((dtype, quant), FLOAT, len(steps)), {"x": steps[None]}))
    for size, quant in ((61, WHOLE), (3, WHOLE), (64, Quant((0.1,)))):
        words = np.random.default_rng(size).integers(-(2**31), 2**31, size, np.int32)
        words[:3] = -(2**31), 2**31 - 1, 2**24 + 1
        runs.append((conversion(("int32", quant), FLOAT, size), {"x": words[None]}))
    return runs


SETS = ("avx2_fma", "avx512", "mve", "neon", "rvv", "rvv256", "sse2")


@pytest.mark.turns(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_vectors_do_the_same(name: str, tmp_path: Path) -> None:
    isa, runs, targets = isas()[name], [], []
    for graph, inputs in edges():
        for _, target in candidates(graph, name):
            runs.append((graph, inputs))
            targets.append(target)
    assert len(runs) >= len(edges()) // 2
    ways: list[dict[str, Any]] = [{"flags": [*SANITIZE, "-DNN_PORTABLE"]}]
    if runs_here(isa):
        ways.append({"flags": ["-O2"]})
    elif (elsewhere := emulated(isa)) is not None:
        ways.append({"flags": CROSS, "compiler": elsewhere[0], "runner": elsewhere[1].split()})
    for number, way in enumerate(ways):
        (folder := tmp_path / str(number)).mkdir()
        for (graph, inputs), found in zip(runs, run_many(runs, folder, targets=targets, **way), strict=True):
            given, wanted = inputs["x"], interpret.run(graph, {"x": np.nan_to_num(inputs["x"], nan=-3e38)})["y"]
            if given.dtype == np.float32:
                np.testing.assert_array_equal(found["y"], wanted)
            else:
                np.testing.assert_array_equal(found["y"].view(np.uint32), wanted.view(np.uint32))
