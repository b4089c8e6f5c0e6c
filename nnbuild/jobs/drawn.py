"""The samples of a check to which none are given: random ones, and extreme ones."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Graph, Quant, Tensor
from nnbuild.model.samples import FloatArray, SampleSet
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.rounding import limits
from nnbuild.ops.convert import Convert
from nnbuild.ops.drawn import drawn, reach

RANDOM = 16
REACH = 4.0
"""How far the extremes of a float lie from zero: random ones are normal, and seldom get there."""
PATTERNS = ("minimum", "maximum", "zero", "alternating", "alternating back")


def drawn_samples(graph: Graph) -> SampleSet:
    """Random samples first, then each input at its minimum, its maximum, its zero point, and alternating between the
    ends, in both ways: the ends of tables and saturation are reached. Always the same."""
    chance = np.random.default_rng(0)
    return SampleSet({name: _values(chance, graph, graph.tensors[name]) for name in graph.inputs}, drawn=True)


def _values(chance: np.random.Generator, graph: Graph, tensor: Tensor) -> FloatArray:
    """Normal numbers; for a quantized input, numbers from its whole range."""
    some = drawn(graph, tensor.name, chance, RANDOM)
    if tensor.quant is not None:
        some = dequantize(some, tensor.quant.scale, tensor.quant.zero_point)
    low_end, high_end = ends(graph, tensor)
    return np.concatenate([some, [pattern(each, tensor.shape, low_end, high_end) for each in PATTERNS]])


def ends(graph: Graph, tensor: Tensor) -> tuple[float, float]:
    """The smallest and the largest number an input can tell apart; of a float that is computed with, as it is, ones
    far enough out."""
    if tensor.is_whole:
        low, high = reach(graph, tensor)
        return float(low), float(high)
    quants = [(tensor.dtype, tensor.quant), *_converted(graph, tensor.name)]
    found = [dequantize(np.array(limits(dtype)), quant.scale, quant.zero_point) for dtype, quant in quants if quant]
    if not found:
        return -REACH, REACH
    return min(float(pair[0]) for pair in found), max(float(pair[1]) for pair in found)


def _converted(graph: Graph, name: str) -> list[tuple[str, Quant | None]]:
    """What a float input is quantized to at once."""
    outputs = [op.outputs[0] for op in graph.ops if isinstance(op.attributes, Convert) and name in op.inputs]
    return [(graph.tensors[each].dtype, graph.tensors[each].quant) for each in outputs]


def pattern(name: str, shape: tuple[int, ...], low: float, high: float) -> FloatArray:
    """One extreme sample."""
    if name.startswith("alternating"):
        odd = np.arange(int(np.prod(shape))).reshape(shape) % 2
        low, high = (high, low) if name.endswith("back") else (low, high)
        return np.where(odd == 1, np.float32(high), np.float32(low))
    return np.full(shape, {"minimum": low, "maximum": high, "zero": 0.0}[name], np.float32)
