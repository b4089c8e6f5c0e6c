"""One short file defines a vector set: it gets kernels for every vector operation, and they are correct."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nnbuild.isa import registry
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.plan.target import Target
from tests.kernels import made_up_set
from tests.kernels.cases import cases
from tests.kernels.test_variants import PORTABLE, candidates, compare, graph_of

pytestmark = pytest.mark.slow

LINES = 120
SEEN = {
    "float": {"conv2d", "depthwise_conv2d", "dense", "pool2d", "binary", "activation", "lstm", "gru", "simple_rnn"},
    "int8": {"conv2d", "depthwise_conv2d", "dense", "pool2d", "binary", "reduce"},
    "int16": {"conv2d", "depthwise_conv2d", "dense"},
}
"""Kinds of operations for which some case has a kernel of the set."""
TOGETHER = 60
"""Kernels in one program."""
EVERY = 7
"""The share of cases to run when time is short: one of so many."""


@pytest.fixture(autouse=True)
def made_up() -> Iterator[None]:
    with registry.added(made_up_set.ISA, made_up_set.VECTORS):
        yield


def found(form: str) -> list[tuple[str, str, Graph, Target]]:
    """(case, kernel, graph, target) for every case that a kernel of the set accepts."""
    graphs = [(name, graph_of(name, maker, form)) for name, maker in cases()]
    return [
        (name, kernel, graph, target)
        for name, graph in graphs
        if graph is not None
        for kernel, target in candidates(graph, made_up_set.ISA.name)
    ]


def test_it_is_one_short_file() -> None:
    assert len(Path(made_up_set.__file__).read_text().splitlines()) <= LINES
    assert made_up_set.VECTORS.lanes == 4


def test_sets_of_today_are_short_files() -> None:
    for path in Path(registry.__file__).parent.glob("*.py"):
        if "\nVECTORS = " in (text := path.read_text()):
            assert len(text.splitlines()) <= 250, f"{path.name} has {len(text.splitlines())} lines"


@pytest.mark.parametrize("form", ["float", "int8", pytest.param("int16", marks=pytest.mark.full)])
def test_it_computes_every_operation_that_vectors_compute(form: str) -> None:
    kinds = {graph.ops[0].kind for _, _, graph, _ in found(form)}
    assert kinds >= SEEN[form]
    ours = {kind for kind in kinds if any(k.needs == made_up_set.ISA.features for k in variants(kind))}
    assert ours == kinds


@pytest.mark.turns(2)
@pytest.mark.parametrize("flags", [("-O0",), PORTABLE], ids=["native", "portable"])
@pytest.mark.parametrize("form", ["float", "int8"])
def test_some_equal_the_reference(form: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    compare(found(form)[::EVERY], form, tmp_path / "some", flags)


@pytest.mark.full
@pytest.mark.parametrize("flags", [("-O1",), PORTABLE], ids=["native", "portable"])
@pytest.mark.parametrize("form", SEEN)
def test_all_equal_the_reference(form: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    all_found = found(form)
    for begin in range(0, len(all_found), TOGETHER):
        compare(all_found[begin : begin + TOGETHER], form, tmp_path / str(begin), flags)
