"""Inputs beyond the samples: many kinds of them, to find one that tells two programs apart."""

from __future__ import annotations

import numpy as np

from nnbuild.jobs.drawn import PATTERNS, ends, pattern
from nnbuild.model.graph import Graph, Tensor
from nnbuild.model.samples import FloatArray, SampleSet

FAMILIES = 8


def searched_samples(graph: Graph, samples: SampleSet, count: int, seed: int) -> SampleSet:
    """The extremes, then by turns: normal, uniform, saturated, sparse, single numbers at an end, levels, changed
    samples, and smooth ones. The same for a seed."""
    chance = np.random.default_rng([seed, 1])
    made = {name: np.empty((count, *graph.tensors[name].shape), np.float32) for name in graph.inputs}
    for name, values in made.items():
        low, high = ends(graph, graph.tensors[name])
        for index in range(count):
            if index < len(PATTERNS):
                values[index] = pattern(PATTERNS[index], values.shape[1:], low, high)
            else:
                given = samples.inputs[name][index % len(samples)]
                values[index] = _drawn(chance, index % FAMILIES, graph.tensors[name], (low, high), given)
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
