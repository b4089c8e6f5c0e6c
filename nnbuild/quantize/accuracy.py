"""Raises the layers that cost most accuracy to a finer format, until the loss is small enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.quantize.calibrate import Batch, Ranges
from nnbuild.quantize.data import Source, batches, labels
from nnbuild.quantize.quantize import Recipe, quantize_with
from nnbuild.quantize.report import as_float, last_states, predicted

SAMPLES = 2000
"""Most labelled samples used."""
RANKING_SAMPLES = 64
"""Samples on which layers are ranked."""


def refuse_no_points(drop: float) -> None:
    if not 0 <= drop <= 100:
        raise UsageError(f"--accuracy-drop {drop:g}", "it is a number of percentage points.", "Give 0 to 100.")


def quantize_within(graph: Graph, recipe: Recipe, ranges: Ranges, drop: float) -> Graph:
    """An integer graph that loses at most `drop` percentage points of accuracy against the float one."""
    refuse_no_points(drop)
    known = _labels(recipe.source, graph)
    target = accuracy(graph, graph, recipe.source, known) - drop / 100
    made = quantize_with(graph, recipe, ranges)
    reached = accuracy(graph, made, recipe.source, known)
    raised: dict[str, str] = {}
    for layer, form in _candidates(graph, recipe, ranges) if reached < target else ():
        raised[layer] = form
        made = quantize_with(graph, replace(recipe, keep={**raised, **recipe.keep}), ranges)
        reached = accuracy(graph, made, recipe.source, known)
        if reached >= target:
            break
    if reached < target:
        raise CheckFailed(
            "--accuracy-drop",
            f"with every layer raised that --keep leaves free the accuracy is {reached:.2%}, wanted was {target:.2%}.",
            "Keep fewer layers, or allow a larger drop.",
        )
    return replace(made, notes=(*made.notes, *_said(graph, raised, reached)))


def _said(graph: Graph, raised: Mapping[str, str], reached: float) -> Iterator[str]:
    if not raised:
        yield f"no layer had to be raised; accuracy on the samples {reached:.2%}"
        return
    sizes = {op.layer or op.name: graph.tensors[op.outputs[0]] for op in graph.ops}
    extra = sum(int(np.prod(sizes[layer].shape)) * (1 if form == "int16" else 3) for layer, form in raised.items())
    listing = ", ".join(f"{layer}={form}" for layer, form in raised.items())
    yield f"raised for accuracy: {listing}; {extra:,} more bytes of activations; accuracy on the samples {reached:.2%}"


def _labels(source: Source, graph: Graph) -> Array:
    known = labels(source, graph)
    if known is None:
        raise UsageError("--accuracy-drop", "the calibration data have no array `labels`.", "Add the right classes.")
    return known


def accuracy(original: Graph, graph: Graph, source: Source, known: Array) -> float:
    """The share of samples whose first output is the right class."""
    right = total = 0
    carried: Batch = {}
    for batch in _limited(source, original, SAMPLES):
        found = interpret.run(graph, batch, carried=carried)
        carried = last_states(graph, found)
        values = found[graph.outputs[0]]
        right += int((predicted(values) == known[total : total + len(values)]).sum())
        total += len(values)
    return right / max(1, total)


def _candidates(graph: Graph, recipe: Recipe, ranges: Ranges) -> list[tuple[str, str]]:
    """(layer, format) in the order in which raising helps most: first all to 16 bits, then all to float."""
    layers = list(dict.fromkeys(op.layer or op.name for op in graph.ops))
    free = [layer for layer in layers if layer not in recipe.keep]
    steps = ["int16", "float"] if recipe.form == "int8" else ["float"]
    gains = {layer: _error_with(graph, recipe, ranges, layer, steps[0]) for layer in free}
    ranked = sorted(free, key=lambda layer: gains[layer])
    return [(layer, form) for form in steps for layer in ranked]


def _error_with(graph: Graph, recipe: Recipe, ranges: Ranges, layer: str, form: str) -> float:
    """The output's error when only this layer is raised."""
    made = quantize_with(graph, replace(recipe, keep={layer: form, **recipe.keep}), ranges)
    error = 0.0
    carried: tuple[Batch, Batch] = ({}, {})
    name = made.outputs[0]
    for batch in _limited(recipe.source, graph, RANKING_SAMPLES):
        exact = interpret.run(graph, batch, carried=carried[0])
        found = interpret.run(made, batch, carried=carried[1])
        carried = last_states(graph, exact), last_states(made, found)
        error += float(np.square(as_float(made.tensors[name], found[name]) - exact[graph.outputs[0]]).sum())
    return error


def _limited(source: Source, graph: Graph, count: int) -> Iterator[Batch]:
    for batch in batches(source, graph):
        size = len(next(iter(batch.values())))
        yield {name: value[:count] for name, value in batch.items()}
        count -= size
        if count <= 0:
            return
