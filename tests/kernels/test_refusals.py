"""No shape makes the planner or a kernel fail: a kernel that cannot serve refuses, and the next one serves."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.windows import same_padding as same
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.quantized import quantized

SETS = ("c99", "armv6m", "armv7em_dsp", "sse2", "avx2_fma", "avx512_vnni")


def window_graph(chance: np.random.Generator) -> Graph:
    """Odd windows over small images: dilated, even, larger than the image, one row or one column high."""
    height, width = int(chance.choice([1, 1, 2, 3, 7])), int(chance.choice([1, 2, 5, 9]))
    channels, units = int(chance.choice([1, 3, 4, 8])), int(chance.choice([1, 4, 5, 16]))
    kernel = int(chance.integers(1, 5)), int(chance.integers(1, 5))
    strides = int(chance.integers(1, 4)), int(chance.integers(1, 4))
    dilation = (int(chance.integers(1, 4)), int(chance.integers(1, 4))) if strides == (1, 1) else (1, 1)
    shape = (height, width, channels)
    padding = tuple(same((height, width)[i], kernel[i], strides[i], dilation[i]) for i in (0, 1))
    weights = chance.normal(size=(*kernel, channels, units)).astype(np.float32)
    bias = {"bias": chance.normal(size=units).astype(np.float32)}
    match int(chance.integers(4)):
        case 0:
            one = chance.normal(size=(*kernel, channels, 1)).astype(np.float32)
            return single(DepthwiseConv2D(strides, dilation, padding), [shape], {"kernel": one})
        case 1:
            pads = tuple(same((height, width)[i], kernel[i], strides[i], 1) for i in (0, 1))
            function = "max" if chance.integers(2) else "average"
            return single(Pool2D(function, kernel, strides, pads), [shape])
        case _:
            return single(Conv2D(strides, dilation, padding), [shape], {"kernel": weights} | bias)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
def test_windows_of_all_kinds_are_planned(form: str) -> None:
    assert stumbles(form, 6, seed=0) == []


@pytest.mark.full
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
def test_many_windows_are_planned(form: str) -> None:
    assert stumbles(form, 1000, seed=1) == []


def stumbles(form: str, count: int, seed: int) -> list[str]:
    chance, found = np.random.default_rng(seed), []
    for index in range(count):
        graph = window_graph(chance)
        if form != "float":
            graph = quantized(graph, form, index, same_scale=graph.ops[0].kind == "pool2d")
        for name in SETS:
            for optimize in ("speed", "size"):
                try:
                    make_plan(graph, "net", Target(isa=isas()[name], optimize=optimize))
                except Exception:  # any exception is one too many
                    op = graph.ops[0]
                    where = traceback.format_exc().strip().splitlines()[-3:]
                    found.append(f"{name} {optimize} {form} {op.attributes} {graph.tensors['x0'].shape}: {where}")
    return found
