"""Masks: large negative numbers that are added to scores or put in their place, for what a softmax must not see.

Their size means nothing, but one format for -10,000 or less and for scores leaves the scores no steps. A mask needs
only be so deep that the masked scores lie below all others by more than an exponential shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.arg import Arg
from nnbuild.ops.binary import Binary
from nnbuild.ops.convert import Convert
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import LEFT_OUT, Select
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.quantize.calibrate import Ranges

MASK_DEPTH = 8.0
"""How far masked scores lie below all others: the exponential of that is less than one 8-bit step."""
RANKED_DEPTH = 1 / 16
"""The same, as a share of the scores' range, where only their order counts."""
INPUT_DEPTH = -1000.0
"""Numbers that make an input a mask."""
MOVES = (Reshape, Transpose, Repeat)


def with_shallow_masks(graph: Graph, ranges: Ranges) -> tuple[Graph, Ranges]:
    """The graph and ranges with every mask just as deep as all scores need that it is added to."""
    found = dict(ranges)
    depths: dict[str, float] = {}
    masked = set[str]()
    for op in graph.ops:
        if side := _replaces(graph, op):
            held, (out,) = found[op.inputs[1]], op.outputs
            depth = (held.high - held.low) * RANKED_DEPTH if _is_ranked(graph, out) else MASK_DEPTH
            beyond = 0 if op.inputs[1] in masked else depth
            found[out] = replace(held, low=held.low - beyond) if side < 0 else replace(held, high=held.high + beyond)
            masked.add(out)
        if (role := _constant_mask(graph, op)) is not None:
            held = found[op.inputs[0]]
            depth = held.high - held.low + MASK_DEPTH
            if float(graph.constants[op.constants[role]].data.min()) < -depth:
                graph = _held_within(graph, op, role, -depth)
                found[op.outputs[0]] = replace(found[op.outputs[0]], low=held.low - MASK_DEPTH, high=held.high)
        for mask, scores in (op.inputs, op.inputs[::-1]) if len(op.inputs) == 2 and _adds(op) else ():
            held = found[scores]
            depth = held.high - held.low + MASK_DEPTH
            path = list(_made_from(graph, mask))
            low, high = _extent(graph, ranges, *path[-1])
            if high != 0 or low >= -depth:
                continue
            if all(_for_softmax(graph, name) for name, _ in path):
                depths |= {name: max(depths.get(name, 0.0), depth / factor) for name, factor in path}
                found[op.outputs[0]] = replace(found[op.outputs[0]], low=held.low - MASK_DEPTH, high=held.high)
                break
    for name, depth in depths.items():
        found[name] = replace(found[name], low=-depth)
        maker = _maker(graph, name)
        if maker is not None and _is_of_truth_values(graph, maker):
            graph = _scaled(graph, maker, depth / -_extent(graph, ranges, name, 1.0)[0])
    return graph, found


def _constant_mask(graph: Graph, op: Op) -> str | None:
    """The role of a constant mask that is added to scores: it is 0 where these are seen, and below elsewhere."""
    if len(op.inputs) != 1 or not _adds(op) or not _for_softmax(graph, op.outputs[0]):
        return None
    (role,) = op.constants
    return role if float(graph.constants[op.constants[role]].data.max()) == 0 else None


def _held_within(graph: Graph, op: Op, role: str, low: float) -> Graph:
    """The graph with a constant that is nowhere lower."""
    name = f"{op.constants[role]}/shallow"
    held = Constant(name, np.maximum(graph.constants[op.constants[role]].data, np.float32(low)))
    ops = tuple(replace(each, constants={role: name}) if each is op else each for each in graph.ops)
    return replace(graph, constants={**graph.constants, name: held}, ops=ops)


def _replaces(graph: Graph, op: Op) -> int:
    """Whether it puts masks in the place of scores: -1 for very low numbers, 1 for very high ones, where the least are
    picked."""
    if not isinstance(op.attributes, Select) or len(op.inputs) != 2:
        return 0
    (values,) = (graph.constants[name].data for name in op.constants.values())
    return -1 if float(values.max()) <= LEFT_OUT else 1 if float(values.min()) >= -LEFT_OUT else 0


def _is_ranked(graph: Graph, name: str) -> bool:
    """Whether only the order of scores counts, as when the largest are picked one after the other."""
    return name not in graph.outputs and all(
        isinstance(op.attributes, Arg)
        or (isinstance(op.attributes, Reduce) and op.attributes.function in ("max", "min"))
        or ((isinstance(op.attributes, MOVES) or _replaces(graph, op) != 0) and _is_ranked(graph, op.outputs[0]))
        for op in graph.ops
        if name in op.inputs
    )


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


def _extent(graph: Graph, ranges: Ranges, name: str, factor: float) -> tuple[float, float]:
    """The lowest and the highest value of a mask, whatever the samples show: an input of very low numbers, a selection
    between constants, or a factor of truth values. (0, 0) for scores that are computed, however low."""
    maker = _maker(graph, name)
    if maker is None:
        found = ranges[name]
        return (found.low, found.high) if found.low <= INPUT_DEPTH else (0.0, 0.0)
    if isinstance(maker.attributes, Select) and len(maker.inputs) == 1:
        values = np.concatenate([graph.constants[held].data.reshape(-1) for held in maker.constants.values()])
    elif _is_of_truth_values(graph, maker):
        scale, shift = (graph.constants[maker.constants[role]].data for role in ("scale", "shift"))
        values = np.concatenate([shift, scale + shift])
    else:
        return 0.0, 0.0
    return factor * float(values.min()), factor * float(values.max())


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
