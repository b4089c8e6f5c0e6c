"""Kernels skip zero inputs where samples have many of them and the estimate says that it pays, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import site_of
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.quantized import quantized


def chosen(isa: str, zeros: float, kept: float = 1.0) -> str:
    graph = quantized(single(Dense(), [(320,)], {"kernel": np.ones((320, 32))}), "int8", seed=1)
    kernel = graph.constants["kernel"]
    data = kernel.data * (np.random.default_rng(1).random(kernel.data.shape) < kept)
    tensors = {name: replace(tensor, zeros=zeros) for name, tensor in graph.tensors.items()}
    constants = {**graph.constants, "kernel": replace(kernel, data=data.astype(np.int8))}
    graph = replace(graph, tensors=tensors, constants=constants)
    return choose(site_of(graph, graph.ops[0]), Target(isas()[isa])).kernel.name


@pytest.mark.parametrize(
    ("isa", "zeros", "kept", "wanted"),
    [
        ("c99", 0.5, 1.0, True),
        ("c99", 0.0, 1.0, False),
        ("armv7em_dsp", 0.5, 1.0, False),
        ("c99", 0.8, 0.1, True),
        ("armv7em_dsp", 0.0, 0.1, False),
    ],
)
def test_zero_inputs_are_skipped_where_that_pays(isa: str, zeros: float, kept: float, wanted: bool) -> None:
    assert ("columns" in chosen(isa, zeros, kept)) == wanted
