"""Inputs whose columns have different units, as those of sensors: a tensor has one scale for all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.ops.affine import Affine
from nnbuild.passes.fold_affine import MOST_SPREAD
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.calibrate import Ranges
from nnbuild.quantize.from_inputs import from_inputs
from nnbuild.quantize.whole_numbers import read_by

NOTED_SPREAD = 4 * MOST_SPREAD
TINIEST = 1e-30
"""In the place of a factor of 0."""
FEW_COLUMNS = 64
"""Of up to so many each counts; of more, as of the pixels of an image, some may hardly vary."""
MANY = 1 / 4
"""The share of more columns that counts."""
NAMED = 8


def of_columns(graph: Graph) -> Iterator[tuple[Op, list[Op], float]]:
    """What brings the columns of inputs, which differ in their units, to one, with the operations up to it, and
    by how much they differ."""
    draft = GraphEditor(graph)
    for op in graph.ops:
        if isinstance(op.attributes, Affine) and (between := from_inputs(draft, op)):
            sizes = np.abs(graph.constants[op.constants["scale"]].data.astype(np.float64))
            if sizes.max() > MOST_SPREAD * sizes.min():
                yield op, between, float(sizes.max() / max(sizes.min(), TINIEST))


def about_columns(
    graph: Graph, ranges: Ranges, forms: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> Iterator[str]:
    """What is normalized in integers, and columns of the samples that vary by less than a step, so that integers see
    nothing of them. `tensors` are those of the integer graph."""
    noted = set[str]()
    for op, between, spread in of_columns(graph):
        if forms[op.name] != "float" and spread > NOTED_SPREAD:
            noted |= read_by(graph, {each.name for each in between})
            yield (
                f"layer {op.layer or op.name!r}: the columns of its input differ by a factor of {spread:.0f}, and "
                "share one scale; with --io float they are normalized before they are quantized"
            )
    for name in graph.inputs:
        forms_read = {forms[op.name] for op in graph.ops if name in op.inputs} - {"float"}
        if name not in noted and forms_read and (step := _step(name, tensors)):
            yield from _lost(name, np.array(ranges[name].spreads), step, forms_read)


def _step(name: str, tensors: Mapping[str, Tensor]) -> float:
    """Of an input, or of the integers that it is made."""
    held = [tensor for each, tensor in tensors.items() if each == name or each.startswith(f"{name} as int")]
    return max((tensor.quant.scale for tensor in held if tensor.quant is not None and not tensor.is_whole), default=0.0)


def _lost(name: str, spreads: Array, step: float, forms: Collection[str]) -> Iterator[str]:
    lost = np.flatnonzero((spreads > 0) & (spreads < min(step, spreads.max(initial=0.0) / NOTED_SPREAD)))
    if len(lost) > (0 if len(spreads) <= FEW_COLUMNS else MANY * np.count_nonzero(spreads)):
        which = ", ".join(map(str, lost[:NAMED])) + (" …" if len(lost) > NAMED else "")
        finer = "" if "int16" in forms else "int16, or "
        yield (
            f"input {name!r}: its columns {which} (of {len(spreads)}, from 0) vary by less than one step, {step:.3g}, "
            f"since all columns share one scale: use {finer}columns of one size, as a normalization in front makes "
            "them, computed in floats with --io float"
        )
