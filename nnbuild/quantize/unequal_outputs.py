"""Outputs that hold large and small values, as a detector's boxes and scores: one format has no steps for the small
ones, and they are joined, or scaled, in floats. So are whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.gather import Gather
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.calibrate import Ranges
from nnbuild.quantize.formats import activation_format

FEWEST_STEPS = {"int8": 16, "int16": 256}
"""Of values that stay integers: of a part of an output, or of the largest result in a format that is given."""
MOVES = (Gather, Pick, Repeat, Reshape, Slice, Transpose)
CHEAP = (Affine, Binary, Concatenate, Convert, *MOVES)
"""What is computed in floats with it: it scales and shifts what is small."""


def unequal_outputs(
    graph: Graph, draft: GraphEditor, ranges: Ranges, forms: Mapping[str, str]
) -> Iterator[tuple[Op, frozenset[str], str]]:
    """What makes such an output, the operations around it that take floats with it, and why."""
    for op in draft.ops.values():
        form, (made, *_) = forms[op.name], op.outputs
        if form == "float" or draft.tensors[made].is_whole or not (spans := _parts(draft, op, ranges)):
            continue
        step, small = activation_format(ranges[made], form).scale, min(spans)
        if small < FEWEST_STEPS[form] * step and (after := _moves_to_outputs(graph, draft, op)) is not None:
            cause = f"its output holds values that span {max(spans):.3g} and others that span {small:.3g}, less than "
            cause += f"{FEWEST_STEPS[form]} steps of {form} for both"
            yield op, frozenset({op.name, *after, *_before(draft, op)}), cause


def whole_outputs(graph: Graph, draft: GraphEditor) -> set[str]:
    """What moves whole numbers, as those of classes, to outputs in floats."""
    found = set[str]()
    for op in draft.ops.values():
        if isinstance(op.attributes, Convert) and draft.tensors[op.inputs[0]].dtype == "int32":
            found |= _moves_to_outputs(graph, draft, op) or set()
    return found


def _parts(draft: GraphEditor, op: Op, ranges: Ranges) -> list[float]:
    """How far the values of each part are apart; nothing of what does not vary."""
    match op.attributes:
        case Concatenate():
            return [span for name in op.inputs if (span := ranges[name].high - ranges[name].low) > 0]
        case Affine() | Binary("multiply") if len(op.inputs) == 1:
            (name,) = (name for role, name in op.constants.items() if role != "shift")
            factors = np.abs(draft.constants[name].data.astype(np.float64))
            given = ranges[op.inputs[0]]
            return [(given.high - given.low) * float(factor) for factor in np.unique(factors[factors > 0])]
    return []


def _moves_to_outputs(graph: Graph, draft: GraphEditor, op: Op) -> set[str] | None:
    """The moves that lead from its result to outputs; None where something else reads it, or nothing."""
    found, after = set[str](), [op]
    for each in after:
        readers = draft.readers(each.outputs[0])
        if not all(isinstance(reader.attributes, MOVES) for reader in readers):
            return None
        if not readers and each.outputs[0] not in graph.outputs:
            return None
        after += readers
        found |= {reader.name for reader in readers}
    return found


def _before(draft: GraphEditor, op: Op) -> set[str]:
    """What scales, shifts and joins the parts, and is read by nothing else."""
    found = {op.name}
    for each in reversed(draft.ops.values()):
        readers = draft.readers(each.outputs[0])
        alone = each.outputs[0] not in draft.pinned and readers and all(reader.name in found for reader in readers)
        if alone and isinstance(each.attributes, CHEAP):
            found.add(each.name)
    for each in draft.ops.values():
        makers = [draft.maker(name) for name in each.inputs]
        if isinstance(each.attributes, MOVES) and not any(maker and maker.name in found for maker in makers):
            found.discard(each.name)
    return found
