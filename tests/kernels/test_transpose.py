"""Transposes: the innermost loop is the one of small strides, and runs that stay together are moved as such."""

from __future__ import annotations

import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.loops.straight_copies import by_strides
from nnbuild.kernels.loops.strided import Walk, contiguous, loops
from nnbuild.ops.transpose import Transpose
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.quantized import quantized


def test_the_innermost_loop_has_small_strides() -> None:
    turned = loops((32, 32, 16), Walk(contiguous((32, 32, 16))), Walk((32, 1, 1024)))
    assert turned.sizes == (1024, 16)
    ordered = by_strides(turned)
    assert (ordered.sizes, [walk.strides for walk in ordered.walks]) == ((16, 1024), [(1, 16), (1024, 1)])


def test_a_short_loop_is_not_the_innermost_one() -> None:
    turned = loops((3, 40), Walk((40, 1)), Walk((1, 3)))
    assert by_strides(turned).sizes == (3, 40)
    assert by_strides(loops((40, 3), Walk((3, 1)), Walk((1, 40)))).sizes == (3, 40)


@pytest.mark.parametrize(
    ("isa", "shape", "order", "kernel"),
    [
        ("c99", (16, 5, 9), (1, 2, 0), "straight"),
        ("c99", (20, 12, 8), (1, 0, 2), "scalar"),
        ("armv7em_dsp", (20, 12, 32), (1, 0, 2), "by_fours"),
        ("sse2", (16, 5, 9), (1, 2, 0), "sse2_turned"),
        ("zve32x", (64, 49), (1, 0), "zve32x_turned"),
        ("neon", (64, 49), (1, 0), "neon_turned"),
        ("sse2", (3, 32, 32), (1, 2, 0), "straight"),
        ("armv7em_dsp", (20, 12, 24), (1, 0, 2), "scalar"),
        ("rv32im", (20, 12, 32), (1, 0, 2), "by_words"),
    ],
)
def test_the_kernel_that_is_chosen(isa: str, shape: tuple[int, ...], order: tuple[int, ...], kernel: str) -> None:
    graph = quantized(single(Transpose(order), [shape]), "int8", seed=1, same_scale=True)
    assert make_plan(graph, "net", Target(isas()[isa])).steps[0].kernel_name == kernel


@pytest.mark.parametrize("isa", ["sse2", "neon"])
def test_floats_are_turned_in_blocks(isa: str) -> None:
    graph = single(Transpose((0, 2, 1)), [(9, 32, 17)])
    assert make_plan(graph, "net", Target(isas()[isa])).steps[0].kernel_name == f"{isa}_turned_floats"
