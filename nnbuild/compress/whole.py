"""The whole of it: what is wished for, layer by layer, what came of it, and what that cost in accuracy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.compress.graph import Name, compressed
from nnbuild.compress.layer import Spec
from nnbuild.compress.layers import matrices, weighted
from nnbuild.compress.measure import measure_of, outputs_of
from nnbuild.compress.patterns import UNSTRUCTURED
from nnbuild.compress.record import Compression, Stage, described
from nnbuild.compress.samples import Samples, samples_of
from nnbuild.compress.wishes import Wishes
from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site, site_of
from nnbuild.quantize.data import Source

FEWEST_INPUTS, FEWEST_OUTPUTS, FEWEST = 8, 4, 256
"""With fewer inputs or outputs, or weights, every one counts and none is pruned: filters of single channels, say."""

Heard = Callable[[str], None]


def compress(
    original: Graph, dense: Graph, source: Source, wishes: Wishes, bytes_of: Callable[[Graph], int], heard: Heard
) -> tuple[Graph, Compression]:
    """`original` are floats, or the same graph; `bytes_of` is what a graph takes on its board."""
    names = list(weighted(dense))
    if not names:
        raise UsageError(
            wishes.said,
            "the model has no weights of 8 bits.",
            "Leave it out, or give --quantize int8 to a model with dense layers or convolutions.",
        )
    samples = samples_of(source, original)
    specs = _specs(dense, wishes)
    made = compressed(dense, samples.fitted, specs, heard)
    asked = {name: str(spec) for name, spec in specs.items() if spec.changes}
    path, measure = _path(original, dense, made.graph, samples)
    found = Compression(
        described(made.graph, asked, made.lost),
        measure,
        samples.count,
        path,
        bytes_of(dense),
        bytes_of(made.graph),
        wishes.said,
    )
    return made.graph, found


def _path(original: Graph, dense: Graph, made: Graph, samples: Samples) -> tuple[tuple[Stage, ...], str]:
    graphs = {"float": original, "int8": dense, "compressed": made}
    if original is dense:
        del graphs["float"]
    outputs = {name: outputs_of(graph, samples.measured) for name, graph in graphs.items()}
    measure = measure_of(original, samples.measured, next(iter(outputs.values())), samples.labels)
    return tuple(Stage(name, measure.value(values)) for name, values in outputs.items()), measure.name


def _specs(graph: Graph, wishes: Wishes) -> dict[Name, Spec]:
    layers = {op.layer or op.name for op, _ in weighted(graph)}
    for layer in wishes.by_layer:
        if layer not in layers:
            names = ", ".join(sorted(layers)[:12])
            raise UsageError(f"--prune {layer}=", "the model has no such layer with weights.", f"Those it has: {names}")
    specs = {(op.name, role): _spec(site_of(graph, op), role, wishes) for op, role in weighted(graph)}
    if not any(spec.changes for spec in specs.values()):
        raise UsageError(wishes.said, "no layer of the model is large enough for it.", "Leave it out.")
    return specs


def _spec(site: Site, role: str, wishes: Wishes) -> Spec:
    weights = matrices(site, role, site.constant(role))
    share = wishes.by_layer.get(
        site.op.layer or site.op.name, wishes.prune if isinstance(wishes.prune, float) else None
    )
    density = 1 - share if share and prunable(weights.shape) else None
    distinct = len(np.unique(weights))
    values = wishes.share if wishes.share is not None and wishes.share < min(distinct, weights.size // 4) else None
    return Spec(density, UNSTRUCTURED, values, 4 if wishes.bits == "4" else 8)


def prunable(shape: tuple[int, ...]) -> bool:
    _, inputs, outputs = shape
    return inputs >= FEWEST_INPUTS and outputs >= FEWEST_OUTPUTS and inputs * outputs >= FEWEST
