"""Networks whose fullest steps are computed row by row: the same results, and an arena that only holds some rows."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.kernels.test_float import samples
from tests.support.many import run_many
from tests.support.quantized import full_range

pytestmark = pytest.mark.slow


class Net:
    """A random network of one operation after the other, now and then with a way around some of them."""

    def __init__(self, seed: int) -> None:
        self.chance, self.numbers = random.Random(seed), np.random.default_rng(seed)
        shape = (self.chance.randint(5, 14), self.chance.randint(3, 9), self.chance.randint(1, 9))
        self.tensors = {"x": Tensor("x", shape)}
        self.constants: dict[str, Constant] = {}
        self.ops: list[Op] = []
        self.last = "x"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensors[self.last].shape

    def add(self, attributes: Attributes, *inputs: str, **constants: np.ndarray) -> None:
        name = f"t{len(self.ops)}"
        roles = {role: f"{name}_{role}" for role in constants}
        data = {role: value.astype(np.float32) for role, value in constants.items()}
        self.constants |= {roles[role]: Constant(roles[role], value) for role, value in data.items()}
        shapes = [self.tensors[i].shape for i in inputs]
        (shape,) = attributes.shapes(shapes, {role: value.shape for role, value in data.items()})
        self.tensors[name] = Tensor(name, shape, layer=name)
        self.ops.append(Op(f"{name}_op", attributes, inputs, (name,), roles, layer=name))
        self.last = name

    def layer(self, keep: bool = False) -> None:
        """Any layer; one that keeps the shape where that is asked for."""
        height, width, channels = self.shape
        kh, kw = (self.chance.choice((1, 3)), self.chance.choice((1, 3)))
        stride = 1 if keep or min(height, width) < 4 else self.chance.choice((1, 1, 2))
        pads = ((kh // 2, kh // 2), (kw // 2, kw // 2))
        kind = self.chance.choice(("conv", "conv", "depthwise", "tanh", "pool"))
        if kind == "conv":
            filters = channels if keep else self.chance.randint(1, 12)
            weights = self.numbers.normal(size=(kh, kw, channels, filters)) / (kh * kw * channels) ** 0.5
            self.add(
                Conv2D((stride, stride), padding=pads, clamp=Clamp(low=0.0)),
                self.last,
                kernel=weights,
                bias=self.numbers.normal(size=filters),
            )
        elif kind == "depthwise":
            weights = self.numbers.normal(size=(kh, kw, channels, 1)) / (kh * kw) ** 0.5
            self.add(DepthwiseConv2D((stride, stride), padding=pads), self.last, kernel=weights)
        elif kind == "pool" and not keep and min(height, width) >= 4:
            self.add(Pool2D(self.chance.choice(("max", "average"))), self.last)
        else:
            self.add(Activation("tanh"), self.last)

    def block(self) -> None:
        start = self.last
        for _ in range(self.chance.randint(1, 3)):
            self.layer(keep=True)
        self.add(Binary("add", Clamp(low=0.0)), *self.chance.sample((start, self.last), 2))

    def graph(self) -> Graph:
        return verify(Graph("net", self.tensors, self.constants, tuple(self.ops), ("x",), (self.last,)))


def network(seed: int) -> Graph:
    net = Net(seed)
    for _ in range(net.chance.randint(1, 3)):
        if net.chance.random() < 0.5:
            net.block()
        else:
            net.layer()
    net.layer()
    return net.graph()


def integers(graph: Graph, form: str) -> Graph:
    recipe = Recipe(form, Source(None))
    values = samples(graph, positive=False, count=8)
    return quantize_with(graph, recipe, calibrate(graph, lambda: iter([values]), "minmax", 8))


def streams(plan: Plan) -> int:
    return sum(step.kernel_name.startswith("stream") for step in plan.steps)


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    ("form", "isa"),
    [
        ("int8", "armv7em_dsp"),
        ("int16", "c99"),
        ("float", "c99"),
        pytest.param("int8", "c99", marks=pytest.mark.full),
        pytest.param("int16", "armv7em_dsp", marks=pytest.mark.full),
        pytest.param("float", "armv7em_dsp", marks=pytest.mark.full),
    ],
)
def test_streams_compute_the_same(form: str, isa: str, tmp_path: Path) -> None:
    target = Target(isas()[isa], optimize="ram")
    found, apart = 0, replace(target, optimize="speed")
    runs = []
    for seed in range(24):
        graph = network(seed) if form == "float" else integers(network(seed), form)
        plan = make_plan(graph, "net", target)
        if streams(plan):
            found += 1
            assert plan.arena < make_plan(graph, "net", apart).arena
            runs.append((graph, samples(graph, False) if form == "float" else full_range(graph, 4, seed=seed)))
    assert found >= 8
    results = run_many(runs, tmp_path, targets=[target] * len(runs))
    for (graph, inputs), result in zip(runs, results, strict=True):
        wanted = interpret.run(graph, inputs, *(["float64"] if form == "float" else []))
        for name in graph.outputs:
            if form == "float":
                np.testing.assert_allclose(result[name], wanted[name], rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(result[name], wanted[name])


def test_nothing_is_streamed_for_speed() -> None:
    for seed in range(12):
        assert not streams(make_plan(network(seed), "net", Target()))
        assert not streams(make_plan(network(seed), "net", Target(optimize="ram", keep_tensors=True)))
