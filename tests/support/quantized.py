"""Integer graphs of one operation, with random scales, zero points and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.layer_norm import UNIT, summand_scale
from nnbuild.numeric.rounding import limits
from nnbuild.ops.softmax import Softmax

SUM_TYPES = {"int8": "int32", "int16": "int64"}
FIXED = {"int8": Quant((2.0**-8,), -128), "int16": Quant((2.0**-15,), 0)}
"""What a softmax's output is in."""


def quantized(
    graph: Graph, dtype: str, seed: int, same_scale: bool = False, powers: tuple[float, float] = (-8, -2)
) -> Graph:
    """The graph with integer tensors; weights are drawn anew over their whole range, but for zeros.

    `same_scale` gives outputs the scale of the first input, as operations that only move or choose want it.
    Scales are drawn between these powers of two.
    """
    chance = np.random.default_rng([seed, len(dtype)])
    first = graph.inputs[0]
    formats = {name: _format(chance, dtype, powers) for name in graph.tensors}
    if same_scale:
        formats = dict.fromkeys(formats, formats[first])
    op = graph.ops[0]
    out = op.outputs[0]
    if isinstance(op.attributes, Softmax):
        formats[out] = FIXED[dtype]
    channels = (1, *graph.tensors[out].shape)[-1]
    constants = {
        name: _constant(chance, f"{op.kind} {role}", graph.constants[name], dtype, channels)
        for role, name in op.constants.items()
    }
    if "kernel" in op.constants and not same_scale:
        formats[out] = replace(formats[out], scales=(_output_scale(constants[op.constants["kernel"]], formats[first]),))
    tensors = {n: Tensor(n, t.shape, dtype, formats[n], t.layer) for n, t in graph.tensors.items()}
    return verify(replace(graph, tensors=tensors, constants=constants))


def _format(chance: np.random.Generator, dtype: str, powers: tuple[float, float] = (-8, -2)) -> Quant:
    scale = float(np.float32(2.0 ** chance.uniform(*powers)))
    zero = int(chance.integers(-128, 128)) if dtype == "int8" else 0
    return Quant((scale,), zero)


def _constant(chance: np.random.Generator, role: str, constant: Constant, dtype: str, channels: int) -> Constant:
    name, shape = constant.name, constant.data.shape

    def drawn(low: int, high: int, kind: str, quant: Quant | None) -> Constant:
        return Constant(name, chance.integers(low, high + 1, shape).astype(kind), quant)

    match role.split():
        case ["binary", _]:
            return drawn(*limits(dtype), dtype, _format(chance, dtype))
        case ["prelu", "slope"]:
            return drawn(-128, 127, "int8", Quant((float(np.float32(0.004)),), int(chance.integers(-20, 20))))
        case ["affine", "scale"]:
            return drawn(-127, 127, "int8", _channels(chance, shape[0]))
        case ["layer_norm", "scale"]:
            return drawn(*limits("int16"), "int16", Quant((1.5 / UNIT,)))
        case ["layer_norm", "shift"]:
            return drawn(-(2**24), 2**24, "int32", Quant((summand_scale(1.5 / UNIT),)))
        case [_, "bias" | "shift"]:
            return drawn(-3000, 3000, SUM_TYPES[dtype], None)
    found = drawn(-127, 127, "int8", _channels(chance, channels))
    return replace(found, data=np.where(constant.data == 0, 0, found.data).astype("int8"))


def _channels(chance: np.random.Generator, channels: int) -> Quant:
    scales = (2.0 ** chance.uniform(-9, -5, channels)).astype(np.float32)
    return Quant(tuple(map(float, scales)), 0, -1)


def _output_scale(kernel: Constant, x: Quant) -> float:
    """Large enough that most outputs are not saturated."""
    assert kernel.quant is not None
    taps = max(1, kernel.data.size // len(kernel.quant.scales))
    return float(np.float32(max(kernel.quant.scales) * x.scale * 70 * 70 * np.sqrt(taps) * 3 / 127))


def giving_floats(graph: Graph, seed: int) -> Graph:
    """The same layer on bytes with results in floats, and so its bias."""
    op, out = graph.ops[0], graph.tensors[graph.ops[0].outputs[0]]
    tensors = {**graph.tensors, out.name: Tensor(out.name, out.shape, layer=out.layer)}
    bias = op.constants.get("bias")
    drawn = np.random.default_rng(seed).normal(0, 3, out.shape[-1]).astype(np.float32)
    constants = {**graph.constants, **({bias: Constant(bias, drawn)} if bias else {})}
    return verify(replace(graph, tensors=tensors, constants=constants))


def full_range(graph: Graph, count: int, seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    values = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        low, high = limits(tensor.dtype)
        values[name] = chance.integers(low, high + 1, (count, *tensor.shape)).astype(tensor.dtype)
    return values


def with_weights(graph: Graph, value: int) -> Graph:
    """The same with one number for all weights of its first operation."""
    name = graph.ops[0].constants["kernel"]
    filled = replace(graph.constants[name], data=np.full_like(graph.constants[name].data, value))
    return replace(graph, constants={**graph.constants, name: filled})
