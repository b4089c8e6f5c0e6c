"""The vectors of a pack: inputs, and the reference's value of every tensor."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from nnbuild.jobs.generated_samples import generated_samples, searched_samples
from nnbuild.model.graph import Array, Graph
from nnbuild.model.samples import SampleSet
from nnbuild.ops import interpret
from nnbuild.ops.tolerance import Standard, rounded

COUNT = 64
"""Number of vectors to generate where none are given."""
LARGEST = 1 << 26
"""Maximum bytes of all tensors of all vectors."""


def drawn(graph: Graph) -> SampleSet:
    """Random and extreme vectors, then mixed ones, as many as fit."""
    few = generated_samples(graph)
    more = min(COUNT, most(graph)) - len(few)
    if more <= 0 or graph.states:
        return few
    many = searched_samples(graph, few, more, 1).inputs
    return SampleSet({name: np.concatenate([few.inputs[name], many[name]]) for name in few.inputs}, drawn=True)


def most(graph: Graph) -> int:
    held = sum(prod(tensor.shape) * np.dtype(tensor.dtype).itemsize for tensor in graph.tensors.values())
    return max(1, LARGEST // max(1, held))


def first(samples: SampleSet, count: int) -> SampleSet:
    return SampleSet({name: values[:count] for name, values in samples.inputs.items()}, drawn=samples.drawn)


def values(graph: Graph, samples: SampleSet) -> dict[str, Array]:
    """Inputs in the program's format, and everything that no float computation precedes: outputs, and without states
    every tensor."""
    computed = interpret.run(graph, samples.inputs)
    exact = [name for name in computed if name not in rounded(graph) and graph.tensors[name].quant is not None]
    kept = exact if not graph.states else [name for name in exact if name in graph.outputs]
    names = sorted({*graph.inputs, *kept})
    return {name: np.asarray(computed[name], graph.tensors[name].dtype) for name in names}


def tolerances(wanted: Mapping[str, Standard]) -> dict[str, float]:
    """The allowed difference between two targets: twice each one's tolerance; none without a float computation
    upstream."""
    return {name: 2 * float(each.tolerance.max(initial=0.0)) for name, each in wanted.items()}
