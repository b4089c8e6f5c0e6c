"""Kernels that skip zero weights against the reference, for any pattern of zeros."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import site_of
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.test_integer_recurrent import quantized as recurrent_quantized
from tests.kernels.test_variants import FEATURES, PORTABLE, home, runs_here
from tests.support.compiled import SANITIZE
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

pytestmark = pytest.mark.slow

SHAPES = [(64, 16), (640, 12), (92, 70), (301, 9), (5, 3), (1, 1), (16, 1)]
KEPT = (0.03, 0.12, 0.4, 0.0)
ON_PAIRS = {
    ("dense", "buckets"),
    ("dense", "rows_prefixed"),
    ("dense", "rows_spread"),
    ("dense", "rows_unpacked"),
    ("gru", "int4"),
    ("lstm", "sparse_pairs"),
    ("lstm", "sparse_scattered"),
    ("conv2d", "patches_packed_prefixed"),
}
SHARES = 3
ANYWHERE = ("columns", "sparse_columns", "some_of_many_by_1", "some_of_many_by_2", "some_of_many_by_4")
PATTERNS = ((4, 2), (1, 1), (4, 1), (16, 4))


def pruned(inputs: int, outputs: int, rows: int, depth: int, kept: float, seed: int = 0) -> Array:
    """Weights of which a share of blocks is kept; a whole column and a stretch of inputs are zero."""
    chance = np.random.default_rng([inputs, outputs, rows, depth, seed])
    there = chance.random((-(-inputs // depth), -(-outputs // rows))) < kept
    there[:, there.shape[1] // 2] &= there.shape[1] == 1
    there[10 : 10 + 600 // depth] &= inputs < 600
    mask = np.repeat(np.repeat(there, depth, 0), rows, 1)[:inputs, :outputs]
    return (mask * chance.normal(size=mask.shape)).astype(np.float32)


def graphs(dtype: str) -> Iterator[tuple[str, Graph]]:
    for index, (inputs, outputs) in enumerate(SHAPES):
        for turn in (0, 2):
            kept, (rows, depth) = KEPT[(index + turn) % 4], PATTERNS[(index // 2 + turn) % 4]
            kernel = pruned(inputs, outputs, rows, depth, kept)
            constants = {"kernel": kernel} | ({"bias": np.ones(outputs)} if index % 2 else {})
            graph = single(Dense(Clamp(0.0, 1.0) if index % 3 else Clamp()), [(inputs,)], constants)
            made = with_zeros(quantized(graph, dtype, seed=index))
            yield f"{inputs}x{outputs} {rows}x{depth} {kept}", few_values(made) if turn else made


def with_zeros(graph: Graph) -> Graph:
    """A graph half of whose inputs are known to be zero."""
    tensors = {name: replace(tensor, zeros=0.5) for name, tensor in graph.tensors.items()}
    return replace(graph, tensors=tensors)


def half_zero(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    """The inputs, with every second number of one sample at its zero point."""
    for name, values in inputs.items():
        quant = graph.tensors[name].quant
        values[1].reshape(-1)[::2] = quant.zero_point if quant is not None else 0
    return inputs


def few_values(graph: Graph) -> Graph:
    """The graph with fifteen distinct weights, as after weight sharing."""
    kernel = graph.constants["kernel"]
    data = np.sign(kernel.data) * (np.abs(kernel.data) // 19 * 19 + 6 * (kernel.data != 0))
    return replace(graph, constants={**graph.constants, "kernel": replace(kernel, data=data.astype(np.int8))})


def narrow() -> Iterator[tuple[str, Graph]]:
    """Graphs with weights of four bits, and of sixteen values, all in use."""
    for index, (inputs, outputs) in enumerate(((40, 9), (301, 16), (3, 1))):
        graph = quantized(single(Dense(), [(inputs,)], {"kernel": np.ones((inputs, outputs))}), "int8", seed=index)
        for name, factor in (("int4", 1), ("codes", 15)):
            yield f"{inputs}x{outputs} {name}", of_few_bits(graph, factor)


def convolutions() -> Iterator[tuple[str, Graph]]:
    for index, (kernel, groups, filters) in enumerate((((3, 3), 1, 10), ((1, 1), 1, 7), ((3, 2), 2, 6))):
        taps = np.ones((*kernel, 4 // groups, filters))
        attributes = Conv2D(padding=((kernel[0] // 2, kernel[0] // 2), (0, 0)), groups=groups)
        graph = quantized(single(attributes, [(5, 6, 4)], {"kernel": taps}), "int8", seed=index)
        yield f"convolution {index}", of_few_bits(graph, 9 * index + 1)
    taps = {"kernel": np.ones((3, 3, 5, 2))}
    graph = quantized(single(DepthwiseConv2D(padding=((1, 1), (1, 1))), [(5, 6, 5)], taps), "int8", seed=4)
    yield "depthwise", of_few_bits(graph, 3)


def layers() -> Iterator[tuple[str, Graph]]:
    for index, (layer, features) in enumerate(
        [(LSTM(units=9), 70), (GRU(units=5), 6), (GRU(units=6, reset_after=False), 9), (SimpleRNN(units=7), 300)]
    ):
        layer = replace(layer, sequences=bool(index % 2))
        constants = {}
        for role, inputs in (("kernel", features), ("recurrent", layer.units)):
            shared = pruned(inputs, layer.units, 1, 2, 0.2) if index else pruned(inputs, layer.units, 1, 1, 0.05)
            constants[role] = np.tile(shared, layer.gates)
        constants["kernel"][0, 0] = 1.0
        made = recurrent_quantized(single(layer, [(4, features)], constants), "int8")
        yield f"{layer.kind}{index}", made
        if index < 2:
            for factor in (1, 15):
                yield f"{layer.kind}{index} by {factor}", of_few_bits(made, factor)


def of_few_bits(graph: Graph, factor: int) -> Graph:
    """The graph with 4-bit weights, or multiples of them."""
    constants = {
        name: replace(held, data=(np.clip(held.data // 15, -8, 7) * factor).astype(np.int8))
        for name, held in graph.constants.items()
        if held.data.dtype == np.int8
    }
    return replace(graph, constants={**graph.constants, **constants})


def cases(dtype: str) -> Iterator[tuple[str, Graph, Target]]:
    for name, graph in (*graphs(dtype), *((*narrow(), *convolutions(), *layers()) if dtype == "int8" else ())):
        op = graph.ops[0]
        for kernel in variants(op.kind):
            isa = home(kernel) if kernel.encoding or kernel.name == "columns" else None
            if isa is None:
                continue
            target = Target(isa, features=FEATURES, alignment=64, forced_kernels={op.name: kernel.name})
            if refusal(kernel, site_of(graph, op), target) is None:
                yield f"{name} {kernel.name}", graph, target


@pytest.mark.turns(3)
@pytest.mark.turns(SHARES)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("dtype", ["int8", pytest.param("int16", marks=pytest.mark.full)])
@pytest.mark.parametrize("flags", [pytest.param((), marks=pytest.mark.full), PORTABLE])
def test_kernels_that_skip_zeros_equal_the_reference(
    dtype: str, flags: tuple[str, ...], share: int, tmp_path: Path
) -> None:
    mine = [case for case in cases(dtype) if flags == PORTABLE or runs_here(case[2].isa)]
    assert {case[2].isa.name for case in mine} >= ({"c99", "armv7em_dsp"} if flags and dtype == "int8" else {"c99"})
    kinds = Counter((graph.ops[0].kind, target.forced_kernels["op"]) for _, graph, target in mine)
    assert kinds["dense", "sparse_codes"] > 4 and (
        not flags or dtype == "int16" or kinds["dense", "avx2_fma_sparse_codes"]
    )
    assert not flags or dtype == "int16" or kinds["dense", "avx512_vbmi_sparse"] > 4
    assert all(kinds["dense", name] > 4 for name in ANYWHERE if dtype == "int8" or name.startswith("some"))
    assert dtype == "int16" or kinds["conv2d", "scalar_unpacked"] == 3
    assert dtype == "int16" or (kinds["conv2d", "scalar_prefixed"], kinds["depthwise_conv2d", "scalar_prefixed"]) == (
        3,
        1,
    )
    assert dtype == "int16" or kinds.keys() >= (ON_PAIRS if flags else set())
    mine = mine[share::SHARES]
    runs = [(graph, half_zero(graph, full_range(graph, 3, seed=1))) for _, graph, _ in mine]
    found = run_many(runs, tmp_path, targets=[target for _, _, target in mine], flags=flags or SANITIZE)
    for (name, graph, _), (_, inputs), outputs in zip(mine, runs, found, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(outputs[output], wanted[output], err_msg=name)


def test_swappable_weights_are_not_encoded() -> None:
    graph = dict(graphs("int8"))["64x16 4x2 0.03"]
    site = site_of(graph, graph.ops[0])
    encoded = [kernel for kernel in variants("dense") if kernel.encoding]
    assert all("exchanged" in str(refusal(k, site, Target(isas()["c99"], swappable=True))) for k in encoded[:1])
