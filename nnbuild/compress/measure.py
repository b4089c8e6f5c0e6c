"""Measures a model's quality on samples, in percentage points, whatever its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.convert import Convert
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.report import as_float, predicted

ACCURACY = "accuracy on the labels"
ANOMALIES = "AUC of the reconstruction's error on the labels"
AGREEMENT = "same class as the original model"
LIKENESS = "share of the original outputs' variance that is retained"


@dataclass(frozen=True, eq=False)
class Measure:
    """`right` are classes, anomaly labels, or the original outputs."""

    name: str
    right: Array
    inputs: Array

    def value(self, outputs: Array) -> float:
        """The quality of a model's first output, given as floats."""
        flat = outputs.reshape(len(outputs), -1).astype(np.float64)
        if self.name == ANOMALIES:
            return 100 * auc(np.square(flat - self.inputs).mean(axis=1), self.right)
        if self.name == LIKENESS:
            spread = float(np.square(self.right - self.right.mean(axis=0)).sum())
            off = float(np.square(flat - self.right).sum())
            return 100 * (1 - off / spread) if spread > 0 else 100.0 * (off == 0)
        return 100 * float((predicted(flat) == self.right).mean())


def measure_of(graph: Graph, samples: Mapping[str, Array], original: Array, labels: Array | None) -> Measure:
    """The measure for this model: labels if there are any, otherwise its original outputs."""
    flat = original.reshape(len(original), -1).astype(np.float64)
    inputs = samples[graph.inputs[0]].reshape(len(flat), -1).astype(np.float64)
    if labels is not None and inputs.shape == flat.shape and set(np.unique(labels)) == {0, 1}:
        return Measure(ANOMALIES, labels, inputs)
    if labels is not None:
        return Measure(ACCURACY, labels, inputs)
    if ends_in_classes(graph):
        return Measure(AGREEMENT, predicted(flat), inputs)
    return Measure(LIKENESS, flat, inputs)


def ends_in_classes(graph: Graph) -> bool:
    """Whether its first output is a softmax, possibly reshaped or converted."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    op = makers.get(graph.outputs[0])
    while op is not None and isinstance(op.attributes, Reshape | Convert):
        op = makers.get(op.inputs[0])
    return op is not None and isinstance(op.attributes, Softmax) and prod(graph.tensors[graph.outputs[0]].shape) > 1


def auc(scores: Array, labels: Array) -> float:
    """The probability that a sample of class 1 scores higher than one of class 0; ties count half."""
    values, places = np.unique(scores, return_inverse=True)
    ones = np.bincount(places, labels, len(values))
    zeros = np.bincount(places, 1 - labels, len(values))
    below = np.cumsum(zeros) - zeros
    pairs = float(ones.sum() * zeros.sum())
    return float((ones * (below + zeros / 2)).sum()) / pairs if pairs else 0.5


def outputs_of(graph: Graph, samples: Mapping[str, Array]) -> Array:
    """The first output as floats."""
    name = graph.outputs[0]
    return as_float(graph.tensors[name], interpret.run(graph, samples)[name])
