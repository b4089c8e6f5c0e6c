"""Normalizations behind a ReLU, where channels that are nearly dead have factors far above the others'."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.model.graph import Array, Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.pool2d import Pool2D
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

SIDE, WIDTH = 4, 16
BETWEEN: dict[str, list[Attributes]] = {
    "relu": [Activation("clamp", (0.0, inf))],
    "leaky": [Activation("leaky_relu", (0.1,))],
    "relu and pool": [Activation("clamp", (0.0, inf)), Pool2D("max", (2, 2), (2, 2))],
    "softplus": [Activation("softplus")],
}


def net(kind: str, between: list[Attributes]) -> tuple[Graph, dict[str, Array]]:
    """A layer of channels that differ by a factor of 400 in size, what brings them to one, and a second layer."""
    chance = np.random.default_rng(5)
    sizes = np.where(np.arange(WIDTH) % 5 == 2, 1 / 400, 1.0)
    taps = (1, 1) if kind == "conv" else ()
    shape = (SIDE, SIDE, WIDTH) if kind == "conv" else (WIDTH,)
    layer = Conv2D() if kind == "conv" else Dense()
    x = np.float32(chance.normal(size=(200, *shape)))
    first = chance.normal(size=(WIDTH, WIDTH)) * sizes
    held = {
        "first": {"kernel": first.reshape(*taps, WIDTH, WIDTH), "bias": np.zeros(WIDTH)},
        "norm": {"scale": np.where(np.arange(WIDTH) % 3, 1, -1) / sizes, "shift": chance.normal(size=WIDTH)},
        "second": {"kernel": chance.normal(size=(*taps, WIDTH, WIDTH)), "bias": chance.normal(size=WIDTH)},
    }
    steps = [layer, *between, Affine(len(shape) - 1), layer]
    names = ["first", *(f"b{i}" for i in range(len(between))), "norm", "second"]
    tensors, ops, before = {"x": Tensor("x", shape)}, [], "x"
    for name, attributes in zip(names, steps, strict=True):
        own = held.get(name, {})
        (made,) = attributes.shapes([tensors[before].shape], {role: value.shape for role, value in own.items()})
        tensors[name] = Tensor(name, made)
        ops.append(Op(name, attributes, (before,), (name,), {role: f"{name} {role}" for role in own}, layer=name))
        before = name
    constants = {
        f"{name} {role}": Constant(f"{name} {role}", np.float32(value))
        for name, own in held.items()
        for role, value in own.items()
    }
    return verify(Graph("net", tensors, constants, tuple(ops), ("x",), (before,))), {"x": x}


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_they_take_no_steps_from_the_others(kind: str, between: str, form: str) -> None:
    if (kind == "dense" and "pool" in between) or (form == "int8" and between == "softplus"):
        return  # bytes do not hold what softplus gives for a channel of small sums
    graph, given = net(kind, BETWEEN[between])
    wanted = interpret.run(graph, given)["second"]
    passed = passes.run(graph, form="int8")
    np.testing.assert_allclose(interpret.run(passed, given)[passed.outputs[0]], wanted, rtol=1e-3, atol=1e-3)
    ranges = calibrate(passed, lambda: [given], "minmax", 8)
    made = quantize_with(passed, Recipe(form=form, float_edge=True), ranges)
    found = interpret.run(made, given)[made.outputs[0]]
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted - wanted.mean(axis=0))
    assert error < (0.05 if form == "int8" else 0.02)
    assert any(isinstance(op.attributes, Affine) for op in made.ops) == (between == "softplus")


@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_weights_of_a_layer_are_rounded_once(kind: str) -> None:
    """A layer directly before a normalization takes its factors and summands together, in every format."""
    graph, _ = net(kind, [])
    first = graph.constants["first bias"]
    bias = replace(first, data=np.random.default_rng(6).normal(size=WIDTH).astype(np.float32))
    graph = replace(graph, constants={**graph.constants, bias.name: bias})
    integers, floats = (passes.run(graph, form=form) for form in ("int8", "float"))
    for one, other in zip(integers.ops, floats.ops, strict=True):
        for role in one.constants:
            ours, theirs = (g.constants[op.constants[role]].data for g, op in ((integers, one), (floats, other)))
            np.testing.assert_array_equal(ours, theirs)
