"""Transposed convolutions as convolutions phase by phase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.names import distinct, unique
from nnbuild.isa.registry import isas
from nnbuild.kernels.loops.transposed import Along
from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.ops import interpret
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import normal, single
from tests.support.many import run_many
from tests.support.quantized import quantized

AXES = [
    Along(inputs, outputs, taps, stride, dilation, crop)
    for inputs, outputs in ((4, 9), (1, 5), (7, 3))
    for taps in (1, 2, 3, 5)
    for stride in (1, 2, 3)
    for dilation in (1, 2)
    for crop in (0, 1, 4)
]


@pytest.mark.parametrize("along", AXES, ids=str)
@pytest.mark.parametrize("joined", [False, True])
def test_every_tap_meets_the_input_that_it_met(along: Along, joined: bool) -> None:
    wanted = {
        (y * along.stride + tap * along.dilation - along.crop, tap, y)
        for y in range(along.inputs)
        for tap in range(along.taps)
    }
    joints = [along.whole] if joined else [along.joint(phase, 1) for phase in range(min(along.stride, along.outputs))]
    found = [
        (joint.first + place * along.stride + phase, tap, place + at * joint.dilation - joint.pad)
        for joint in joints
        for place in range(joint.places)
        for phase, taps in enumerate(joint.taps)
        for tap, at in taps.items()
    ]
    inside = [each for each in found if 0 <= each[0] < along.outputs and 0 <= each[2] < along.inputs]
    assert sorted(inside) == sorted(each for each in wanted if 0 <= each[0] < along.outputs)
    assert all(joint.pad >= 0 for joint in joints)
    assert all(0 <= at < joint.kernel for joint in joints for taps in joint.taps for at in taps.values())


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["float", "int8"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_set_computes_them_with_its_own_instructions(size: int, form: str) -> None:
    """What one product takes is of the order of a convolution's, not of a loop that asks for every tap."""
    how = Conv2DTranspose((16, 16), (2, 2), crop=(size // 3, size // 3))
    graph = single(how, [(8, 8, 16)], {"kernel": normal(size, size, 16, 16)})
    graph = graph if form == "float" else quantized(graph, form, seed=1)
    for isa in isas().values():
        if form == "float" and not any(name in isa.features for name in ("sse2", "neon", "mve")):
            continue
        assert make_plan(graph, "m", Target(isa)).steps[0].kernel_name.endswith("_phases"), isa.name


def test_names_that_are_cut_alike_are_told_apart() -> None:
    long = "a_layer_with_so_long_a_name_that_it_has_to_be_cut_short_somewhere_"
    assert len({unique(long + "1"), unique(long + "2"), unique("a/b"), unique("a_b"), unique("a b")}) == 5
    assert unique("conv2d_1") == "conv2d_1"
    names = distinct(["a/b", "a b", "c/d"])
    assert len(set(names.values())) == 3 and names["c/d"] == "c_d"


def test_layers_whose_names_are_cut_alike_in_one_program(tmp_path: Path) -> None:
    how, long = Conv2DTranspose((4, 4), (2, 2)), "decoder/stage/with/a/rather/long/path/to/conv2d_transpose_"
    shapes = {"x": (2, 2, 3), "a": (4, 4, 3), "b": (8, 8, 3)}
    kernels = {name: Constant(name, normal(2, 2, 3, 3)) for name in ("first", "second")}
    ops = (
        Op(f"{long}1", how, ("x",), ("a",), {"kernel": "first"}),
        Op(f"{long}2", replace(how, size=(8, 8)), ("a",), ("b",), {"kernel": "second"}),
    )
    graph = Graph("m", {name: Tensor(name, shape) for name, shape in shapes.items()}, kernels, ops, ("x",), ("b",))
    given = {"x": np.random.default_rng(1).normal(size=(2, 2, 2, 3)).astype(np.float32)}
    (found,) = run_many([(graph, given)], tmp_path)
    np.testing.assert_allclose(found["b"], interpret.run(graph, given, "float64")["b"], rtol=1e-5, atol=1e-5)
