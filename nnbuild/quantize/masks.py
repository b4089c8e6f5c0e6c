"""Masks that are added to scores before a softmax: large negative numbers for what it must not see.

Their size means nothing, but one format for -10,000 or less and for scores leaves the scores no steps. A mask needs
only be so deep that the masked scores lie below all others by more than an exponential shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.convert import Convert
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.quantize.calibrate import Ranges

MASK_DEPTH = 8.0
"""How far masked scores lie below all others: the exponential of that is less than one 8-bit step."""
MOVES = (Reshape, Transpose, Repeat)


def with_shallow_masks(graph: Graph, ranges: Ranges) -> tuple[Graph, Ranges]:
    """The graph and ranges with every mask just as deep as all scores need that it is added to."""
    found = dict(ranges)
    depths: dict[str, float] = {}
    for op in graph.ops:
        for mask, scores in (op.inputs, op.inputs[::-1]) if len(op.inputs) == 2 and _adds(op) else ():
            held = found[scores]
            depth = held.high - held.low + MASK_DEPTH
            path = list(_made_from(graph, mask))
            if ranges[mask].high > 0 or min(ranges[mask].low, _least(graph, *path[-1])) >= -depth:
                continue
            if all(_for_softmax(graph, name) for name, _ in path):
                depths |= {name: max(depths.get(name, 0.0), depth / factor) for name, factor in path}
                found[op.outputs[0]] = replace(found[op.outputs[0]], low=held.low - MASK_DEPTH, high=held.high)
                break
    for name, depth in depths.items():
        found[name] = replace(found[name], low=-depth)
        maker = _maker(graph, name)
        if maker is not None and _is_of_truth_values(graph, maker):
            graph = _scaled(graph, maker, depth / -_least(graph, name, 1.0))
    return graph, found


def _for_softmax(graph: Graph, name: str) -> bool:
    """Whether all that reads these scores or this mask is a softmax, perhaps behind moves, factors and other masks."""
    readers = [op for op in graph.ops if name in op.inputs]
    return bool(readers) and name not in graph.outputs and all(_leads_on(graph, op) for op in readers)


def _leads_on(graph: Graph, op: Op) -> bool:
    passes = isinstance(op.attributes, MOVES) or _adds(op) or _factor(graph, op) is not None
    return isinstance(op.attributes, Softmax) or (passes and _for_softmax(graph, op.outputs[0]))


def _adds(op: Op) -> bool:
    return isinstance(op.attributes, Binary) and op.attributes.function == "add"


def _maker(graph: Graph, name: str) -> Op | None:
    return next((op for op in graph.ops if name in op.outputs), None)


def _made_from(graph: Graph, name: str) -> Iterator[tuple[str, float]]:
    """The tensor and those that it is moved or multiplied from, each with the factor between."""
    factor = 1.0
    while True:
        yield name, factor
        maker = _maker(graph, name)
        by = None if maker is None else 1.0 if isinstance(maker.attributes, MOVES) else _factor(graph, maker)
        if maker is None or by is None:
            return
        name, factor = maker.inputs[0], factor * by


def _is_of_truth_values(graph: Graph, op: Op) -> bool:
    """Whether it is a factor and a summand of whole numbers."""
    maker = _maker(graph, op.inputs[0]) if isinstance(op.attributes, Affine) else None
    return maker is not None and isinstance(maker.attributes, Convert) and graph.tensors[maker.inputs[0]].is_whole


def _least(graph: Graph, name: str, factor: float) -> float:
    """The lowest value of a mask that a selection or a factor of truth values makes, whatever the samples show."""
    maker = _maker(graph, name)
    if maker is not None and isinstance(maker.attributes, Select):
        return factor * min((float(graph.constants[held].data.min()) for held in maker.constants.values()), default=0.0)
    if maker is None or not _is_of_truth_values(graph, maker):
        return 0.0
    scale, shift = (graph.constants[maker.constants[role]].data for role in ("scale", "shift"))
    return factor * float(min(shift.min(), (scale + shift).min()))


def _scaled(graph: Graph, op: Op, by: float) -> Graph:
    """With a smaller factor and summand; integers need no more, as they saturate."""
    constants, names = dict(graph.constants), {role: f"{name}/shallow" for role, name in op.constants.items()}
    for role, name in names.items():
        constants[name] = Constant(name, (graph.constants[op.constants[role]].data * by).astype(np.float32))
    ops = tuple(replace(each, constants=names) if each is op else each for each in graph.ops)
    return replace(graph, constants=constants, ops=ops)


def _factor(graph: Graph, op: Op) -> float | None:
    """The positive constant that a tensor is multiplied by, if it is."""
    if not isinstance(op.attributes, Binary) or op.attributes.function != "multiply" or len(op.inputs) != 1:
        return None
    values = graph.constants[next(iter(op.constants.values()))].data
    return float(values.max()) if values.size and values.min() == values.max() > 0 else None
