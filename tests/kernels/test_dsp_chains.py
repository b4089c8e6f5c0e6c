"""Residual adds fused with convolutions on Cortex-M4, in odd shapes and with outputs that overlap the residual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.parts import residual
from nnbuild.model.graph import Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import site_of
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import normal
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

pytestmark = pytest.mark.slow

SHAPES = [
    # height, width, in, kernel, filters, stride
    (6, 8, 8, 3, 8, 1),
    (5, 7, 8, 3, 6, 1),
    (4, 5, 12, 1, 10, 1),
    (1, 1, 8, 1, 5, 1),
    (7, 6, 4, 3, 7, 2),
]
SAME = ((1, 1), (1, 1))


def chain(shape: tuple[int, ...], function: str, turned: bool, seed: int) -> Graph:
    height, width, channels, size, filters, stride = shape
    padding = SAME if size == 3 else ((0, 0), (0, 0))
    conv = Conv2D((stride, stride), padding=padding, clamp=Clamp(low=0.0) if seed % 2 else Clamp())
    constants = {"kernel": normal(size, size, channels, filters), "bias": normal(filters)}
    graph = quantized(single(conv, [(height, width, channels)], constants), "int8", seed)
    own = graph.tensors["y0"]
    assert own.quant is not None
    chance = np.random.default_rng(seed)
    other = Tensor("other", own.shape, "int8", Quant((own.quant.scale * float(chance.uniform(0.3, 3)),), 17 - 9 * seed))
    scale = 1.3 * max(own.quant.scale, other.quant.scale if other.quant else 0.0)
    total = Tensor("total", own.shape, "int8", Quant((float(np.float32(scale)),), -40 + 5 * seed))
    operands = ("other", "y0") if turned else ("y0", "other")
    clamp = Clamp(low=0.0) if seed % 3 == 0 else Clamp()
    follower = Op("sum", Binary(function, clamp), operands, ("total",), {}, layer="sum")
    return verify(
        replace(
            graph,
            tensors=dict(graph.tensors) | {"other": other, "total": total},
            ops=(*graph.ops, follower),
            inputs=(*graph.inputs, "other"),
            outputs=("total",),
        )
    )


@pytest.mark.turns(3)
@pytest.mark.parametrize("kernel", ["patches_wide", "patches_packed", "winograd"])
def test_residual_sums(kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "SUM_CYCLES", -50)  # so that the chain is chosen, however small it is
    target = Target(isas()["armv7em_dsp"], forced_kernels={"op": kernel})
    runs = []
    for seed, shape in enumerate(shape for shape in SHAPES if kernel != "winograd" or (shape[3], shape[5]) == (3, 1)):
        for turned, function in ((False, "add"), (True, "add"), (True, "subtract")):
            graph = chain(shape, function, turned, seed)
            plan = make_plan(graph, "m", target)
            assert [step.kind for step in plan.steps] == ["conv2d + binary"]
            runs.append((graph, full_range(graph, 5, seed)))
    results = run_many(runs, tmp_path, targets=[target] * len(runs))
    for (graph, inputs), result in zip(runs, results, strict=True):
        np.testing.assert_array_equal(result["total"], interpret.run(graph, inputs)["total"])


def test_a_broadcast_sum_is_not_taken() -> None:
    graph = chain(SHAPES[0], "add", False, 1)
    other = replace(graph.tensors["other"], shape=(1, 1, 8))
    graph = verify(replace(graph, tensors=dict(graph.tensors) | {"other": other}))
    head, follower = (site_of(graph, op) for op in graph.ops)
    assert residual.refusal(replace(head, tail=(follower,))) == "the other operand has another shape"


def test_a_named_kernel_decides_whether_the_chain_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "SUM_CYCLES", -50)
    graph = chain(SHAPES[0], "add", turned=False, seed=1)
    for kernel, kinds in {"patches_wide": ["conv2d + binary"], "scalar": ["conv2d", "binary"]}.items():
        plan = make_plan(graph, "m", Target(isas()["armv7em_dsp"], forced_kernels={"op": kernel}))
        assert [step.kind for step in plan.steps] == kinds
        assert plan.steps[0].kernel_name == kernel


def test_an_operation_with_a_forced_kernel_has_a_step_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "SUM_CYCLES", -50)
    graph = chain(SHAPES[0], "add", turned=False, seed=1)
    forced = {"op": "patches_wide", graph.ops[1].name: "scalar"}
    plan = make_plan(graph, "m", Target(isas()["armv7em_dsp"], forced_kernels=forced))
    assert [step.kind for step in plan.steps] == ["conv2d", "binary"]
