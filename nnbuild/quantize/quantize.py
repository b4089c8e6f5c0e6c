"""The whole of quantization: calibrate, choose formats, rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nnbuild.graph import Graph, Op
from nnbuild.quantize.calibrate import Ranges, calibrate
from nnbuild.quantize.data import Source, batches
from nnbuild.quantize.rewrite import rewrite, unknown_layers

RANDOM_WARNING = (
    "calibrated with random numbers, because no --calibrate was given: sizes and speed are real, accuracy is not"
)


@dataclass(frozen=True)
class Recipe:
    """What a user can choose of quantization. `keep` gives layers a format of their own."""

    form: str = "int8"
    source: Source = field(default_factory=lambda: Source(None))
    method: str = "minmax"
    keep: Mapping[str, str] = field(default_factory=dict)
    float_edge: bool = False
    bias_correction: bool = True


def ranges_of(graph: Graph, recipe: Recipe) -> Ranges:
    bits = 16 if recipe.form == "int16" else 8
    return calibrate(graph, lambda: batches(recipe.source, graph), recipe.method, bits)


def quantize_with(graph: Graph, recipe: Recipe, ranges: Ranges) -> Graph:
    """The integer graph of a float one that the passes have been over."""
    unknown_layers(graph, recipe.keep)
    if not recipe.bias_correction:
        ranges = {name: replace(found, means=()) for name, found in ranges.items()}
    formats = {op.name: form for op in graph.ops if (form := _kept(op, recipe.keep))}
    made = rewrite(graph, ranges, formats, recipe.form, recipe.float_edge)
    notes = (*made.notes, RANDOM_WARNING) if recipe.source.path is None else made.notes
    return replace(made, notes=notes)


def _kept(op: Op, keep: Mapping[str, str]) -> str | None:
    return keep.get(op.name) or keep.get(op.layer)
