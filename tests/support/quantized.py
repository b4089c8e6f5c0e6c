"""Integer graphs of one operation, with random scales, zero points and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.graph import Array, Constant, Graph, Quant, Tensor
from nnbuild.numeric.rounding import limits
from nnbuild.verify import verify

SUM_TYPES = {"int8": "int32", "int16": "int64"}


def quantized(graph: Graph, dtype: str, seed: int, same_scale: bool = False) -> Graph:
    """The graph with integer tensors; weights are drawn anew over their whole range.

    `same_scale` gives outputs the scale of the first input, as operations that only move or choose want it.
    """
    chance = np.random.default_rng([seed, len(dtype)])
    first = graph.inputs[0]
    formats = {name: _format(chance, dtype) for name in graph.tensors}
    if same_scale:
        formats = dict.fromkeys(formats, formats[first])
    op = graph.ops[0]
    constants = {}
    for role, name in op.constants.items():
        constants[name] = _constant(chance, role, graph.constants[name], graph.tensors[op.outputs[0]].shape[-1], dtype)
    if "kernel" in op.constants and not same_scale:
        out = op.outputs[0]
        formats[out] = replace(formats[out], scales=(_output_scale(constants[op.constants["kernel"]], formats[first]),))
    tensors = {n: Tensor(n, t.shape, dtype, formats[n], t.layer) for n, t in graph.tensors.items()}
    return verify(replace(graph, tensors=tensors, constants=constants))


def _format(chance: np.random.Generator, dtype: str) -> Quant:
    scale = float(np.float32(2.0 ** chance.uniform(-8, -2)))
    zero = int(chance.integers(-128, 128)) if dtype == "int8" else 0
    return Quant((scale,), zero)


def _constant(chance: np.random.Generator, role: str, constant: Constant, channels: int, dtype: str) -> Constant:
    shape = constant.data.shape
    if role == "bias":
        return Constant(constant.name, chance.integers(-3000, 3000, shape).astype(SUM_TYPES[dtype]))
    scales = (2.0 ** chance.uniform(-9, -5, channels)).astype(np.float32)
    return Constant(
        constant.name, chance.integers(-127, 128, shape).astype(np.int8), Quant(tuple(map(float, scales)), 0, -1)
    )


def _output_scale(kernel: Constant, x: Quant) -> float:
    """Large enough that most outputs are not saturated."""
    assert kernel.quant is not None
    taps = max(1, kernel.data.size // len(kernel.quant.scales))
    return float(np.float32(max(kernel.quant.scales) * x.scale * 70 * 70 * np.sqrt(taps) * 3 / 127))


def full_range(graph: Graph, count: int, seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    values = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        low, high = limits(tensor.dtype)
        values[name] = chance.integers(low, high + 1, (count, *tensor.shape)).astype(tensor.dtype)
    return values
