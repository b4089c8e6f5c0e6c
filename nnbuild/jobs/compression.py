"""Fewer, shared or narrower weights in a compilation: what the plan says of their bytes decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from nnbuild.base.errors import UsageError
from nnbuild.compress.record import Compression, described
from nnbuild.compress.record import notes as recognised
from nnbuild.compress.whole import compress
from nnbuild.compress.wishes import Wishes
from nnbuild.emit.weights import weights_bytes
from nnbuild.model.graph import Graph
from nnbuild.plan.code import total
from nnbuild.plan.plan import Plan
from nnbuild.quantize.data import Source

Heard = Callable[[str], None]


def silent(_: str) -> None:
    """For whoever wants no lines of progress."""


def model_flash(plan: Plan) -> int:
    """Bytes of flash that are the model's: its constants, and its kernels' code as it is estimated."""
    return weights_bytes(plan) + total(step.choice.price.code for step in plan.steps)


def with_wishes(
    original: Graph, graph: Graph, source: Source, wishes: Wishes, planned: Callable[[Graph], Plan], heard: Heard
) -> tuple[Graph, Compression]:
    """The graph with its weights as asked for, and what came of that; without a wish, what they are like anyway."""
    if not wishes.any:
        found = described(graph)
        return replace(graph, notes=(*graph.notes, *recognised(found))), Compression(found)
    if all(tensor.quant is None for tensor in graph.tensors.values()):
        raise UsageError(
            wishes.said, "it changes integers, and this model computes in floats.", "Give --quantize int8, too."
        )
    made, record = compress(original, graph, source, wishes, lambda g: weights_bytes(planned(g)), heard)
    return replace(made, notes=(*made.notes, *_said(record))), record


def _said(record: Compression) -> Iterator[str]:
    path = " -> ".join(f"{stage.name} {stage.value:.2f}" for stage in record.path)
    yield (
        f"weights ({record.asked}): {record.bytes_before:,} -> {record.bytes_after:,} bytes of constants; "
        f"{record.measure}, %: {path} on {record.samples:,} samples"
    )
