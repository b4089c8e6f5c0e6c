"""Generated samples: for a check without a samples file, and for the search for inputs that distinguish two
programs."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Graph, Quant, Tensor
from nnbuild.model.samples import FloatArray, SampleSet
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.rounding import limits
from nnbuild.ops.convert import Convert
from nnbuild.ops.drawn import drawn, integer_range
from nnbuild.ops.recurrent import Recurrent

RANDOM = 16
REACH = 4.0
"""Extreme values of a float input; random values are normal and rarely get this far."""
DRAWN = 2**31
"""The seed for a check's samples; searches use other seeds."""
FAMILIES = 8
ONE_BY_ONE = 4000
"""Maximum number of operations that the reference computes for one sample after the other, which models with states
need; each takes numpy half a millisecond, however small it is. Every time step of a recurrent layer counts."""
PATTERNS = ("minimum", "maximum", "zero", "alternating", "alternating back")


def generated_samples(graph: Graph, more: int = 0) -> SampleSet:
    """Random samples, then each input at its minimum, maximum and zero point, and alternating between both ends in
    both orders, to reach the ends of tables and saturation. Then `more` samples of mixed kinds. Always the same."""
    chance = np.random.default_rng(0)
    few = SampleSet({name: _values(chance, graph, graph.tensors[name]) for name in graph.inputs}, drawn=True)
    if not more or not graph.inputs:
        return few
    many = searched_samples(graph, few, more, DRAWN).inputs
    return SampleSet({name: np.concatenate([few.inputs[name], many[name]]) for name in few.inputs}, drawn=True)


def affordable(graph: Graph, most: int) -> int:
    """How many samples, at most `most`, the reference computes in seconds."""
    if not graph.states:
        return most
    recurrent = (op for op in graph.ops if isinstance(op.attributes, Recurrent))
    steps = sum(graph.tensors[op.inputs[0]].shape[-2] for op in recurrent)
    return min(most, ONE_BY_ONE // (len(graph.ops) + steps))


def _values(chance: np.random.Generator, graph: Graph, tensor: Tensor) -> FloatArray:
    """Normal numbers; for a quantized input, numbers from its whole range."""
    some = drawn(graph, tensor.name, chance, RANDOM)
    if tensor.quant is not None:
        some = dequantize(some, tensor.quant.scale, tensor.quant.zero_point)
    low_end, high_end = ends(graph, tensor)
    return np.concatenate([some, [pattern(each, tensor.shape, low_end, high_end) for each in PATTERNS]])


def ends(graph: Graph, tensor: Tensor) -> tuple[float, float]:
    """The smallest and largest number that an input can represent; for a float input, numbers that are far enough
    out."""
    if tensor.is_whole:
        low, high = integer_range(graph, tensor)
        return float(low), float(high)
    quants = [(tensor.dtype, tensor.quant), *_converted(graph, tensor.name)]
    found = [dequantize(np.array(limits(dtype)), quant.scale, quant.zero_point) for dtype, quant in quants if quant]
    if not found:
        return -REACH, REACH
    return min(float(pair[0]) for pair in found), max(float(pair[1]) for pair in found)


def _converted(graph: Graph, name: str) -> list[tuple[str, Quant | None]]:
    """The quantizations that directly follow a float input."""
    outputs = [op.outputs[0] for op in graph.ops if isinstance(op.attributes, Convert) and name in op.inputs]
    return [(graph.tensors[each].dtype, graph.tensors[each].quant) for each in outputs]


def pattern(name: str, shape: tuple[int, ...], low: float, high: float) -> FloatArray:
    """One extreme sample."""
    if name.startswith("alternating"):
        odd = np.arange(int(np.prod(shape))).reshape(shape) % 2
        low, high = (high, low) if name.endswith("back") else (low, high)
        return np.where(odd == 1, np.float32(high), np.float32(low))
    return np.full(shape, {"minimum": low, "maximum": high, "zero": 0.0}[name], np.float32)


def searched_samples(graph: Graph, samples: SampleSet, count: int, seed: int) -> SampleSet:
    """Cycles through normal, uniform, saturated, sparse, single extreme, nearly constant, perturbed and smooth
    samples. The same for each seed."""
    chance = np.random.default_rng([seed, 1])
    made = {name: np.empty((count, *graph.tensors[name].shape), np.float32) for name in graph.inputs}
    for name, values in made.items():
        span = ends(graph, graph.tensors[name])
        for index in range(count):
            given = samples.inputs[name][index % len(samples)]
            values[index] = _drawn(chance, index % FAMILIES, graph.tensors[name], span, given)
        if graph.tensors[name].is_whole:
            np.rint(values, out=values)
    return SampleSet(made, drawn=True)


def _drawn(
    chance: np.random.Generator, family: int, tensor: Tensor, span: tuple[float, float], given: FloatArray
) -> FloatArray:
    low, high = span
    shape, middle, half = tensor.shape, (low + high) / 2, (high - low) / 2
    uniform = chance.uniform(low, high, shape)
    match family:
        case 0:
            values = middle + chance.normal(size=shape) * half * 10.0 ** chance.uniform(-2, 0)
        case 1:
            values = uniform
        case 2:
            values = np.where(uniform < middle, low, high)
        case 3:
            values = np.where(chance.random(shape) < chance.random() * 0.3, uniform, 0.0)
        case 4:
            values = np.where(np.arange(uniform.size).reshape(shape) == chance.integers(uniform.size), high, low)
        case 5:
            values = np.full(shape, chance.uniform(low, high)) + chance.normal(size=shape) * half / 50
        case 6:
            values = given + chance.normal(size=shape) * half * 10.0 ** chance.uniform(-2.5, -0.5)
        case _:
            values = np.cumsum(chance.normal(size=uniform.size)).reshape(shape)
            values = middle + values / max(1e-6, float(np.abs(values).max())) * half
    return np.asarray(np.clip(values, low, high), np.float32)
