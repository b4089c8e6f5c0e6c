"""Integer graphs of one operation as a calibration would make them: ranges from samples, constants to scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.layer_norm import UNIT, summand_scale
from nnbuild.numeric.rounding import limits
from nnbuild.ops import interpret
from nnbuild.ops.softmax import Softmax
from tests.support.quantized import FIXED, SUM_TYPES

TYPES = {"int8": 127, "int16": 32767}


def calibrated(graph: Graph, dtype: str, samples: Mapping[str, Array], same_scale: bool = False) -> Graph:
    """Quantized over what the tensors hold on the samples."""
    seen = interpret.run(graph, samples, "float64")
    formats = {name: fitting(seen[name], dtype) for name in graph.tensors}
    op = graph.ops[0]
    if same_scale:
        formats = dict.fromkeys(formats, fitting(np.concatenate([v.ravel() for v in seen.values()]), dtype))
    if isinstance(op.attributes, Softmax):
        formats[op.outputs[0]] = FIXED[dtype]
    tensors = {n: Tensor(n, t.shape, dtype, formats[n], t.layer) for n, t in graph.tensors.items()}
    x = formats[op.inputs[0]].scale
    constants: dict[str, Constant] = {}
    for role in sorted(op.constants):  # "scale" before "shift", which is in steps of it
        data, name = graph.constants[op.constants[role]].data, op.constants[role]
        constants[name] = _constant(op.kind, role, name, data, dtype, x, constants)
    return verify(replace(graph, tensors=tensors, constants=constants))


def spread_out(graph: Graph, positive: bool, count: int = 200) -> dict[str, Array]:
    """Samples for every input, with `positive` at some distance above zero."""
    chance = np.random.default_rng(3)
    values = {name: chance.normal(scale=2.0, size=(count, *graph.tensors[name].shape)) for name in graph.inputs}
    return {name: (np.abs(v) + 0.2 if positive else v).astype(np.float32) for name, v in values.items()}


def fitting(values: Array, dtype: str) -> Quant:
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if dtype == "int16":
        return Quant((_single(max(high, -low, 1e-6) / 32767),))
    scale = _single(max(high - low, 1e-6) / 255)
    return Quant((scale,), int(np.clip(round(-128 - low / scale), -128, 127)))


def _single(value: float) -> float:
    return float(np.float32(value))


def _constant(
    kind: str, role: str, name: str, data: Array, dtype: str, x: float, made: Mapping[str, Constant]
) -> Constant:
    match kind, role:
        case "binary", _:
            quant = fitting(data, dtype)
            low, high = limits(dtype)
            held = np.clip(np.round(data / quant.scale) + quant.zero_point, low, high)
            return Constant(name, np.asarray(held, dtype), quant)
        case "affine", "scale":
            scales = np.maximum(np.abs(data), 1e-6) / 127
            return Constant(name, np.round(data / scales).astype(np.int8), Quant(tuple(map(_single, scales)), 0, 0))
        case "affine", "shift":
            scales = x * np.array(_quant(made["scale"]).scales)
            return Constant(name, np.round(data / scales).astype(SUM_TYPES[dtype]), Quant(tuple(scales), 0, 0))
        case "layer_norm", "shift":
            scale = summand_scale(_quant(made["scale"]).scale if "scale" in made else 1 / UNIT)
            return Constant(name, np.round(data / scale).astype(np.int32), Quant((scale,)))
    kind = "int16" if kind == "layer_norm" else "int8"
    quant = Quant((_single(np.abs(data).max() / TYPES[kind]),))
    return Constant(name, np.round(data / quant.scale).astype(kind), quant)


def _quant(constant: Constant) -> Quant:
    assert constant.quant is not None
    return constant.quant


def as_meant(graph: Graph, floats: Graph) -> Graph:
    """The float graph with the constants that the integer one really has."""
    constants = {}
    for name, constant in graph.constants.items():
        quant = _quant(constant)
        real = (constant.data.astype(np.float64) - quant.zero_point) * np.array(quant.scales)
        constants[name] = Constant(name, real.reshape(constant.data.shape))
    return replace(floats, constants=constants)


def steps_apart(graph: Graph, floats: Graph, samples: Mapping[str, Array]) -> Array:
    """How many steps of its output the integer graph lies off the float one, both fed with the same numbers."""
    values = interpret.run(graph, samples)
    reals = {
        name: dequantize(values[name], graph.tensors[name].quant.scale, graph.tensors[name].quant.zero_point)
        for name in graph.inputs
    }
    out = graph.outputs[0]
    quant = graph.tensors[out].quant
    assert quant is not None
    wanted = interpret.run(as_meant(graph, floats), reals, "float64")[out] / quant.scale + quant.zero_point
    low, high = limits(graph.tensors[out].dtype)
    apart: Array = np.abs(values[out] - np.clip(wanted, low, high))
    return apart
