"""Bilinear resizing: every kernel of every set equals the reference, of outputs in pairs, alone, and of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.loops.resized_pairs import pairs_of
from nnbuild.kernels.loops.resized_runs import MOST_CHANNELS
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.numeric.resize import CENTRES, CORNERS, EDGES
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import site_of
from nnbuild.plan.target import Target
from tests.kernels.test_variants import PORTABLE, candidates, compare, emulated, home, runs_here
from tests.support.graphs import single
from tests.support.quantized import quantized

SIZES = [
    ((4, 6), (8, 12), CENTRES),
    ((3, 2), (12, 8), CENTRES),
    ((2, 3), (2, 48), CENTRES),
    ((2, 2), (32, 32), CENTRES),
    ((3, 3), (6, 6), EDGES),
    ((3, 5), (5, 9), CORNERS),
    ((4, 5), (7, 8), CENTRES),
    ((6, 8), (3, 4), CENTRES),
    ((1, 1), (2, 3), CENTRES),
]
CHANNELS = (1, 3, 4, 8, 19)
SETS = sorted({isa.name for kernel in variants("resize_bilinear") if (isa := home(kernel)) and isa.features})


FORMS = ("int8", "int16", "float")


def graphs(form: str) -> Iterator[Graph]:
    for seed, (size, out, mode) in enumerate(SIZES):
        for channels in CHANNELS:
            graph = single(ResizeBilinear(out, mode), [(*size, channels)])
            yield graph if form == "float" else quantized(graph, form, seed, same_scale=True, powers=(-5.0, -5.0))


@pytest.mark.turns(10)
@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_kernel_gives_the_references_bits(name: str, tmp_path: Path) -> None:
    isa = isas()[name]
    elsewhere = emulated(isa)
    for form in FORMS:
        cases = [("resize", *each) for graph in graphs(form) for each in with_graph(graph, name)]
        if not cases:
            continue
        compare(cases, form, tmp_path / f"meanings_{form}", PORTABLE)
        if runs_here(isa) or elsewhere:
            compare(cases, form, tmp_path / f"native_{form}", () if elsewhere else ("-O1",), elsewhere)


def with_graph(graph: Graph, name: str) -> list[tuple[str, Graph, Target]]:
    return [(kernel, graph, target) for kernel, target in candidates(graph, name)]


@pytest.mark.parametrize(
    ("kernel", "form"), [("integer", "int8"), ("integer", "int16"), ("runs", "int8"), ("scalar", "float")]
)
def test_portable_c_gives_the_references_bits(kernel: str, form: str, tmp_path: Path) -> None:
    target = Target(isas()["c99"], forced_kernels={"op": kernel})
    channels = MOST_CHANNELS if kernel == "runs" else max(CHANNELS)
    mine = [graph for graph in graphs(form) if graph.tensors[graph.inputs[0]].shape[-1] <= channels]
    compare([("resize", kernel, graph, target) for graph in mine], form, tmp_path / "c99")


@pytest.mark.parametrize(
    ("size", "out", "mode", "apart"),
    [
        (4, 8, CENTRES, [0, 1, 1, 1, 0]),
        (3, 12, CENTRES, [1, 1, 1, 1, 1, 1]),
        (3, 6, EDGES, [1, 1, 1]),
        (2, 6, CENTRES, [1, 1, 0, 0]),
        (8, 4, CENTRES, [0, 0, 0, 0]),
    ],
)
def test_outputs_between_the_same_columns_go_in_pairs(size: int, out: int, mode: str, apart: list[int]) -> None:
    graph = single(ResizeBilinear((1, out), mode), [(1, size, 4)])
    graph = quantized(graph, "int8", 0, same_scale=True)
    assert np.array_equal(pairs_of(site_of(graph, graph.ops[0])).columns["apart"], apart)
