"""Keeps the class of samples near a tie, by adjusting the biases of the last layer.

A layer's fit treats all outputs alike. Where two outputs of the last layer are nearly equal, a fraction of a step
decides, and of equal ones the first wins; so the last bias is adjusted until as many samples as possible, and noisy
copies of those nearest to a tie, keep the class that the unchanged model gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.compress.weight_matrices import bias_of, input_rows, matrices, scale_blocks
from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site, site_of
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import Batch

NEAREST, FORMS = 64, 8
"""Samples nearest to a tie, and noisy copies of each."""
NOISE = 0.01
"""Noise relative to the standard deviation of an input."""
SHIFTS = np.arange(-12, 13) / 4
"""Shifts of a class in output steps that are tried."""
BLUR, WORTH = 0.4, 1e-4
"""Steps over which a sample counts for both classes, and the share of samples that a shift must win."""
TURNS = 3


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes that the unchanged model gives to samples and their noisy copies."""

    last: str
    forms: Batch
    right: Array

    def with_adjusted_bias(self, graph: Graph) -> Graph:
        """The graph with an adjusted bias of its last layer."""
        site = _site(graph, self.last)
        found = class_shifts(_scores(graph, self.last, self.forms), self.right)
        bias, size = site.constants["bias"], scale_blocks(site, "kernel").reshape(-1) * quant_of(site.inputs[0]).scale
        moved = np.round(found * quant_of(site.outputs[0]).scale / size).astype(np.int64)
        limit = np.iinfo(np.int32).max
        data = np.clip(bias.data + moved, -limit, limit).astype(bias.data.dtype)
        return replace(graph, constants={**graph.constants, bias.name: replace(bias, data=data)})


def classes_of(dense: Graph, samples: Batch) -> Classes | None:
    """None where the model does not end in classes that a last layer's bias could shift."""
    last = _last(dense)
    if last is None or dense.states:
        return None
    scores = _scores(dense, last, samples)
    ordered = np.sort(np.round(scores), axis=1)
    count = min(NEAREST, len(scores) // FORMS)
    near = np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")[:count]
    chance = np.random.default_rng(count)
    forms = {
        name: np.concatenate([values, *(_noisy(values, near, chance) for _ in range(FORMS))])
        for name, values in samples.items()
    }
    return Classes(last, forms, np.round(_scores(dense, last, forms)).argmax(axis=1))


def class_shifts(scores: Array, right: Array) -> Array:
    """Shift of each class, in steps, with which most samples have the right one; `scores` are not rounded."""
    classes = scores.shape[1]
    ahead = np.where(np.arange(classes)[None] < right[:, None], 0.5, -0.5)  # of equal scores the first wins

    def won(moved: Array) -> float:
        now = scores + moved
        margins = np.take_along_axis(now, right[:, None], 1) - now - ahead
        np.put_along_axis(margins, right[:, None], np.inf, 1)
        least = np.clip(margins.min(axis=1) / BLUR, -30, 30)
        return float((1 / (1 + np.exp(-least))).mean() - WORTH * np.abs(moved).sum())

    found = np.zeros(classes)
    for _ in range(TURNS):
        before = found
        for at in np.unique(right):
            tried = found + SHIFTS[:, None] * (np.arange(classes) == at)
            best = max(tried, key=won)
            found = best if won(best) > won(found) else found
        if np.array_equal(found, before):
            break
    return found


def _last(graph: Graph) -> str | None:
    """The layer whose outputs, one per class, feed the final softmax."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    op = _behind(makers, graph.outputs[0])
    if op is None or not isinstance(op.attributes, Softmax):
        return None
    op = _behind(makers, op.inputs[0])
    if op is None or not isinstance(op.attributes, Dense | Conv2D) or graph.tensors[op.outputs[0]].dtype != "int8":
        return None
    site = site_of(graph, op)
    one = prod(site.outputs[0].shape) == site.constant("kernel").shape[-1] > 1
    return op.name if one and matrices(site, "kernel", site.constant("kernel")).shape[0] == 1 and _moves(site) else None


def _moves(site: Site) -> bool:
    return bias_of(site, "kernel") is not None and site.constant("bias").dtype == np.int32


def _behind(makers: dict[str, Op], name: str) -> Op | None:
    op = makers.get(name)
    while op is not None and isinstance(op.attributes, Reshape | Convert):
        op = makers.get(op.inputs[0])
    return op


def _site(graph: Graph, name: str) -> Site:
    return site_of(graph, next(op for op in graph.ops if op.name == name))


def _scores(graph: Graph, last: str, samples: Batch) -> Array:
    """The last layer's outputs in steps, before rounding."""
    site, parts = _site(graph, last), list[Array]()

    def note(each: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        if each.op.name == last:
            rows = input_rows(each, "kernel", inputs, len(inputs[0]))[:, 0]
            weights = matrices(each, "kernel", each.constant("kernel"))[0].astype(np.float64)
            sizes = scale_blocks(each, "kernel").reshape(-1) * quant_of(each.inputs[0]).scale
            parts.append((rows @ weights + each.constant("bias")) * sizes)
        return interpret.compute(each, inputs, dtype)

    for batch in _batches(samples):
        interpret.run(graph, batch, how=note)
    found: Array = np.concatenate(parts) / quant_of(site.outputs[0]).scale
    return found


def _batches(samples: Batch, size: int = 64) -> Iterator[Batch]:
    count = len(next(iter(samples.values())))
    for start in range(0, count, size):
        yield {name: values[start : start + size] for name, values in samples.items()}


def _noisy(values: Array, picked: Array, chance: np.random.Generator) -> Array:
    few = values[picked]
    made = few + NOISE * float(np.std(values)) * chance.normal(size=few.shape)
    if values.dtype.kind == "f":
        return made.astype(values.dtype)
    limits = np.iinfo(values.dtype)
    return np.clip(np.round(made), limits.min, limits.max).astype(values.dtype)
