"""Kernels that read or compute indices, counts and truth values, besides floats and scaled integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.rounding import limits
from nnbuild.ops import interpret
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.compare import FUNCTIONS as COMPARISONS
from nnbuild.ops.compare import Compare
from nnbuild.ops.convert import Convert
from nnbuild.ops.gather import Gather
from nnbuild.ops.select import Select
from nnbuild.ops.whole import FUNCTIONS as WHOLE_NUMBERS
from nnbuild.ops.whole import Whole
from tests.kernels.test_variants import PORTABLE, candidates
from tests.support.many import run_many

Form = tuple[str, Quant | None]
FLOAT: Form = ("float32", None)
INT32: Form = ("int32", WHOLE)
TRUTH: Form = ("int8", WHOLE)
BYTE: Form = ("int8", Quant((0.1,), -7))
OTHER: Form = ("int8", Quant((0.23,), 11))
SHORT: Form = ("int16", Quant((0.001,)))
COARSE: Form = ("int8", Quant((3.0,), 5))
RAW: Form = ("uint8", Quant((0.05,), 128))
SAMPLES = 4
Case = tuple[str, Graph, dict[str, Array]]


def graph_of(
    attributes: Attributes,
    inputs: Sequence[tuple[tuple[int, ...], Form]],
    out: Form,
    constants: Mapping[str, tuple[Array, Form]] | None = None,
) -> Graph:
    held = constants or {}
    shapes = attributes.shapes([shape for shape, _ in inputs], {r: v.shape for r, (v, _) in held.items()})
    tensors = [Tensor(f"x{i}", shape, *form) for i, (shape, form) in enumerate(inputs)] + [Tensor("y", shapes[0], *out)]
    names = tuple(f"x{i}" for i in range(len(inputs)))
    stored = {role: Constant(role, value.astype(form[0]), form[1]) for role, (value, form) in held.items()}
    op = Op("op", attributes, names, ("y",), {role: role for role in held})
    return verify(Graph("net", {t.name: t for t in tensors}, stored, (op,), names, ("y",)))


def values(chance: np.random.Generator, shape: tuple[int, ...], form: Form, reach: int = 4) -> Array:
    """Small whole numbers, so that equal ones and zeros occur; all numbers of a scaled type."""
    if form == FLOAT:
        return chance.integers(-3, 4, shape).astype(np.float32)
    if form[1] == WHOLE:
        low, high = (0, 1) if form == TRUTH else (-reach, reach)
    else:
        low, high = limits(form[0])
    return chance.integers(low, high + 1, shape).astype(form[0])


def case(name: str, graph: Graph, seed: int, reach: int = 4) -> Case:
    chance = np.random.default_rng(seed)
    tensors = [graph.tensors[n] for n in graph.inputs]
    return name, graph, {t.name: values(chance, (SAMPLES, *t.shape), (t.dtype, t.quant), reach) for t in tensors}


def broadcasts(chance: np.random.Generator, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast, of odd sizes, with some axes repeated and some missing."""
    whole = tuple(int(n) for n in chance.integers(1, 6, chance.integers(1, 4)))
    shapes = [tuple(n if chance.random() < 0.7 else 1 for n in whole) for _ in range(count - 1)]
    return [whole, *(s[int(chance.integers(0, len(s))) :] for s in shapes)]


def cases() -> Iterator[Case]:
    chance = np.random.default_rng(3)
    for seed in range(3):
        for form in (FLOAT, BYTE, SHORT, INT32):
            yield from gathers(chance, form, seed)
            shapes = broadcasts(chance, 3)
            inputs = [(shapes[1], TRUTH), (shapes[0], form), (shapes[2], form)]
            yield case(f"select {form} {seed}", graph_of(Select(), inputs, form), seed)
            held = {"other": (values(chance, shapes[2], form), form)}
            yield case(f"select other {form} {seed}", graph_of(Select(), inputs[:2], form, held), seed)
            size = shapes[0]
            for axis in range(len(size)):
                function = ("max", "min")[axis % 2]
                yield case(f"arg {form} {size} {axis}", graph_of(Arg(function, axis), [(size, form)], INT32), seed)
        for function in COMPARISONS:
            for pair in ((FLOAT, FLOAT), (INT32, INT32), (BYTE, BYTE), (BYTE, OTHER), (COARSE, OTHER), (SHORT, SHORT)):
                left, right = broadcasts(chance, 2)
                graph = graph_of(Compare(function), [(left, pair[0]), (right, pair[1])], TRUTH)
                yield case(f"{function} {pair} {seed}", graph, seed)
        for function in WHOLE_NUMBERS:
            left, right = broadcasts(chance, 2)
            yield case(f"{function} {seed}", graph_of(Whole(function), [(left, INT32), (right, INT32)], INT32), seed)
            held = {"left": (np.asarray([2**31 - 1, -(2**31), 0, 7])[seed : seed + 1], INT32)}
            far = graph_of(Whole(function), [(left, INT32)], INT32, held)
            yield case(f"{function} far {seed}", far, seed, 2**31 - 1)
        for source, out in ((INT32, FLOAT), (TRUTH, FLOAT), (TRUTH, INT32), (RAW, FLOAT), (RAW, BYTE), (BYTE, RAW)):
            yield case(f"convert {source} {out} {seed}", graph_of(Convert(), [((7, 3), source)], out), seed)
        yield case(f"convert {seed}", graph_of(Convert(), [((9,), FLOAT)], RAW), seed)
        yield case(f"round {seed}", graph_of(Convert(), [((9,), FLOAT)], INT32), seed)


def gathers(chance: np.random.Generator, form: Form, seed: int) -> Iterator[Case]:
    """Includes indices outside the table, which are clamped."""
    size = tuple(int(n) for n in chance.integers(1, 6, 3))
    for axis in range(3):
        indices = tuple(int(n) for n in chance.integers(1, 5, 1 + axis % 2))
        graph = graph_of(Gather(axis), [(size, form), (indices, INT32)], form)
        yield case(f"gather {form} {size} {axis}", graph, seed)
    held = {"table": (values(chance, (5, 3), form), form)}
    yield case(f"embedding {form} {seed}", graph_of(Gather(), [((4,), INT32)], form, held), seed)


@pytest.mark.turns(3)
@pytest.mark.slow
def test_kernels_equal_the_reference(tmp_path: Path) -> None:
    every = list(cases())
    found = run_many([(graph, inputs) for _, graph, inputs in every], tmp_path)
    for (name, graph, inputs), outputs in zip(every, found, strict=True):
        wanted = interpret.run(graph, inputs)["y"]
        np.testing.assert_array_equal(outputs["y"], wanted, err_msg=name)
        assert outputs["y"].dtype == wanted.dtype, name


def selections(form: Form) -> Iterator[Case]:
    """By conditions of each element, row or column."""
    chance, rows = np.random.default_rng(7), (3, 19)
    for condition in (rows, (3, 1), (19,), (1,)):
        for other in (rows, (3, 1), (19,), (1,)):
            inputs = [(condition, TRUTH), (rows, form), (other, form)]
            yield case(f"{condition} {other}", graph_of(Select(), inputs, form), 1)
            held = {"chosen": (values(chance, other, form), form)}
            yield case(f"{condition} {other} held", graph_of(Select(), inputs[:2], form, held), 2)


@pytest.mark.slow
@pytest.mark.parametrize("form", [FLOAT, BYTE, SHORT], ids=["float", "int8", "int16"])
def test_selections_in_vectors(form: Form, tmp_path: Path) -> None:
    runs, targets = [], []
    for _, graph, inputs in selections(form):
        for _, target in candidates(graph):
            runs.append((graph, inputs))
            targets.append(target)
    assert {target.isa.name for target in targets} >= {"sse2", "avx512", "neon", "mve"}
    for graph_and_inputs, found in zip(runs, run_many(runs, tmp_path, targets=targets, flags=PORTABLE), strict=True):
        np.testing.assert_array_equal(found["y"], interpret.run(*graph_and_inputs)["y"])
