"""Quantizes a graph: calibrate, choose formats, rewrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from nnbuild.model.graph import Graph, Op
from nnbuild.quantize.borders import about_marks, with_borders
from nnbuild.quantize.calibrate import Batch, Ranges, calibrate
from nnbuild.quantize.data import Source, batches
from nnbuild.quantize.formats import Rules
from nnbuild.quantize.masks import with_shallow_masks
from nnbuild.quantize.padded_affine import fold_padded_affine
from nnbuild.quantize.rewrite import has_own_format, refuse_unknown_layers, rewrite
from nnbuild.quantize.trained_ranges import in_trained_ranges, with_trained_ranges

RANDOM_WARNING = (
    "calibrated with random numbers, because no --calibrate was given: sizes and speed are real, accuracy is not"
)


Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Recipe:
    """The user's options for quantization. `keep` gives layers a format of their own."""

    form: str = "int8"
    source: Source = field(default_factory=lambda: Source(None))
    method: str = "minmax"
    keep: Mapping[str, str] = field(default_factory=dict)
    float_edge: bool = False
    bias_correction: bool = True
    device: Rules = field(default_factory=dict)
    """Arithmetic of a device's operators, which the integers must suit."""


def ranges_of(graph: Graph, recipe: Recipe, progress: Progress | None = None) -> Ranges:
    bits = 16 if recipe.form == "int16" else 8
    found = calibrate(graph, lambda: _counted(batches(recipe.source, graph), progress), recipe.method, bits)
    return with_trained_ranges(graph, found)


def _counted(samples: Iterator[Batch], progress: Progress | None) -> Iterator[Batch]:
    """The same batches; `progress` gets the number of samples computed so far, and at the end the total."""
    done = 0
    for batch in samples:
        yield batch
        done += len(next(iter(batch.values())))
        if progress is not None:
            progress(done, None)
    if progress is not None:
        progress(done, done)


def quantize_with(graph: Graph, recipe: Recipe, ranges: Ranges) -> Graph:
    """The integer graph of a float graph that the passes have been applied to."""
    refuse_unknown_layers(graph, recipe.keep)
    graph = in_trained_ranges(graph, recipe.form)
    if not recipe.bias_correction:
        ranges = {name: replace(found, means=()) for name, found in ranges.items()}
    graph, ranges = with_shallow_masks(graph, ranges, recipe.form)
    ranges = with_borders(graph, ranges)
    formats = {op.name: form for op in graph.ops if (form := _kept(op, recipe.keep))}

    def form_of(op: Op) -> str:
        return formats.get(op.name, recipe.form)

    if not recipe.device:
        graph, ranges = fold_padded_affine(graph, ranges, form_of, has_own_format)
    made = rewrite(graph, ranges, formats, recipe.form, recipe.float_edge, recipe.device)
    zeros = {name: found.zeros for name, found in ranges.items() if name in made.tensors}
    tensors = {name: replace(tensor, zeros=zeros.get(name, 0.0)) for name, tensor in made.tensors.items()}
    random = [RANDOM_WARNING] if recipe.source.path is None else []
    return replace(made, tensors=tensors, notes=(*made.notes, *about_marks(graph, ranges, made), *random))


def _kept(op: Op, keep: Mapping[str, str]) -> str | None:
    return keep.get(op.name) or keep.get(op.layer)
