"""A maximum over large windows is taken along the rows and then along the columns, with the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.frontend.builder import GraphBuilder
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.pool2d import Pool2D
from nnbuild.passes.split_pools import split_pools
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

CHANCE = np.random.default_rng(2)
EVERYWHERE = Pool2D("max", (5, 5), (1, 1), ((2, 2), (2, 2)))
UNEVEN = Pool2D("max", (7, 9), (2, 3), ((3, 1), (0, 8)), Clamp(0.0, 0.8))
IN_STEPS = (EVERYWHERE, UNEVEN, replace(EVERYWHERE, window=(9, 5), padding=((4, 4), (2, 2))))
AT_ONCE = (
    replace(EVERYWHERE, function="average"),
    Pool2D("max", (3, 3), (1, 1), ((1, 1), (1, 1))),
    Pool2D("max", (5, 5), (5, 5)),
    Pool2D("max", (1, 9), (1, 1)),
    Pool2D("max", (20, 24), (1, 1)),
)


def of(pool: Pool2D, outer: tuple[int, ...] = ()) -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", (*outer, 20, 24, 3))
    with builder.at("pool"), builder.along(outer):
        return verify(builder.finish([builder.one(pool, (x,), {})]))


@pytest.mark.parametrize("outer", [(), (2,)])
@pytest.mark.parametrize("pool", IN_STEPS)
def test_they_give_the_same_numbers(pool: Pool2D, outer: tuple[int, ...]) -> None:
    graph = of(pool, outer)
    made = verify(split_pools(graph))
    assert [min(op.attributes.window) for op in made.ops] == [1, 1]
    x = {"x": CHANCE.normal(size=(2, *graph.tensors["x"].shape)).astype(np.float32)}
    for form in ("float", "int8", "int16"):
        was, now = (
            each if form == "float" else quantize_with(each, Recipe(form), calibrate(each, lambda: [x], "minmax", 8))
            for each in (graph, made)
        )
        whole = verify(split_pools(was))
        for each in (now, whole):
            np.testing.assert_array_equal(*(interpret.run(g, x)[g.outputs[0]] for g in (was, each)))


@pytest.mark.parametrize("pool", AT_ONCE)
def test_small_and_far_windows_stay(pool: Pool2D) -> None:
    assert [op.attributes for op in split_pools(of(pool)).ops] == [pool]
