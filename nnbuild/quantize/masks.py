"""Masks: large negative numbers that are added to scores or put in their place, for what a softmax must not see.

Their size means nothing, but one format for -10,000 or less and for scores leaves the scores no steps. A mask needs
only be so deep that the masked scores lie below all others by more than an exponential shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op
from nnbuild.ops.activation import Activation
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
from nnbuild.quantize.calibrate import FAR, Range, Ranges

MASK_DEPTHS = {"int8": 8.0, "int16": 12.0}
"""How far masked scores lie below all others: the exponential of that is less than one step."""
RANKED_DEPTH = 1 / 16
"""The same, as a share of the scores' range, where only their order counts."""
BIAS_REACH = 8.0
"""The same for a bias, in ranges of the other channels: what it is added to may lie above zero."""
MOVES = (Reshape, Transpose, Repeat)
FADING = ("exponential", "sigmoid")
"""Functions that are nothing at a mask, however deep."""


@dataclass
class _Draft:
    """The graph and the ranges as they become shallow; `given` are the ranges as calibrated."""

    graph: Graph
    given: Ranges
    found: dict[str, Range]
    most: float
    masked: set[str] = field(default_factory=set)
    """Tensors whose masks were put in the place of scores, and are as deep as they need be."""
    depths: dict[str, float] = field(default_factory=dict)
    """Tensors that masks come from -> the values that are deep enough."""
    ends: set[str] = field(default_factory=set)
    """Those of them that come from none before."""

    def below(self, out: str, scores: Range) -> float:
        """How far what is masked must lie below all scores."""
        return (scores.high - scores.low) * RANKED_DEPTH if _is_ranked(self.graph, out) else self.most

    def hold(self, name: str, low: float, high: float) -> None:
        self.found[name] = replace(self.found[name], low=low, high=high)


def with_shallow_masks(graph: Graph, ranges: Ranges, form: str) -> tuple[Graph, Ranges]:
    """The graph and ranges with every mask just as deep as all scores need that it is added to."""
    draft = _Draft(graph, ranges, dict(ranges), MASK_DEPTHS.get(form, 0.0))
    for op in graph.ops:
        _hold_selected(draft, op)
        if (role := _constant_mask(draft.graph, op)) is not None:
            _hold_constant(draft, op, role)
        elif (role := _mask_in_bias(draft.graph, draft.found, op)) is not None:
            _hold_bias(draft, op, role)
        _hold_summand(draft, op)
    for name, deep in draft.depths.items():
        _make_shallow(draft, name, deep)
    return draft.graph, draft.found


def _hold_selected(draft: _Draft, op: Op) -> None:
    """A mask that is put in the place of scores."""
    if side := _replaces(draft.graph, op):
        scores, (out,) = draft.found[op.inputs[1]], op.outputs
        beyond = 0 if op.inputs[1] in draft.masked else draft.below(out, scores)
        ends = (scores.low - beyond, scores.high) if side < 0 else (scores.low, scores.high + beyond)
        draft.found[out] = replace(scores, low=ends[0], high=ends[1])
        draft.masked.add(out)


def _hold_constant(draft: _Draft, op: Op, role: str) -> None:
    """A constant mask that is added to scores."""
    scores, (out,) = draft.found[op.inputs[0]], op.outputs
    below = draft.below(out, scores)
    depth = scores.high - scores.low + below
    if float(draft.graph.constants[op.constants[role]].data.min()) < -depth:
        draft.graph = _held_within(draft.graph, op, role, -depth)
        draft.hold(out, scores.low - below, scores.high)


def _hold_bias(draft: _Draft, op: Op, role: str) -> None:
    (out,) = op.outputs
    low, high = draft.found[out].usual or (0.0, 0.0)
    below = draft.below(out, Range(low, high))
    draft.graph = _held_within(draft.graph, op, role, low - below - BIAS_REACH * (high - low))
    draft.hold(out, low - below, high)


def _hold_summand(draft: _Draft, op: Op) -> None:
    """A mask that is added to scores or subtracted from them: it must be as deep as any of its sums needs."""
    for mask, name, sign in _summands(op):
        scores, (out,) = draft.found[name], op.outputs
        below = draft.below(out, scores)
        depth = scores.high - scores.low + below
        path, least = _mask_of(draft.graph, draft.given, mask, sign)
        if least < -depth and all(_for_softmax(draft.graph, each) for each, _ in path):
            for each, factor in path:
                draft.depths[each] = sign * max(abs(draft.depths.get(each, 0.0)), depth / factor)
            draft.ends.add(path[-1][0])
            draft.hold(out, scores.low - below, scores.high)
            return


def _make_shallow(draft: _Draft, name: str, deep: float) -> None:
    """Gives a tensor that a mask comes from the range up to this value, and its factor where it is computed so."""
    maker = _maker(draft.graph, name)
    if name in draft.ends and maker is not None and _factor_and_summand(draft.graph, maker) is not None:
        low, high = _extent(draft.graph, draft.given, name)
        draft.graph = _scaled(draft.graph, maker, abs(deep) / max(-low, high))
    draft.hold(name, min(0.0, -deep), max(0.0, -deep))


def _mask_in_bias(graph: Graph, ranges: Ranges, op: Op) -> str | None:
    """The role of a constant that puts some channels far below all others, for what picks or weighs the largest."""
    role = next((name for name in ("bias", "shift") if name in op.constants), None)
    if role is None and len(op.inputs) == 1 and _adds(op):
        (role,) = op.constants
    if role is None or len(op.outputs) != 1 or float(graph.constants[op.constants[role]].data.min()) > -FAR:
        return None
    shown = ranges[op.outputs[0]]
    masked = shown.usual not in (None, (0.0, 0.0)) and shown.low <= -FAR and shown.high < FAR
    return role if masked and _for_softmax(graph, op.outputs[0]) else None


def _summands(op: Op) -> Iterator[tuple[str, str, int]]:
    """(mask, scores, 1) for either operand of a sum; (mask, scores, -1) where a mask of large numbers is subtracted."""
    if not _joins(op) or len(op.inputs) != 2:
        return
    left, right = op.inputs
    if _adds(op):
        yield left, right, 1
        yield right, left, 1
    else:
        yield right, left, -1


def _mask_of(graph: Graph, ranges: Ranges, name: str, sign: int) -> tuple[list[tuple[str, float]], float]:
    """The tensors that a mask comes from, each with the factor between, and its lowest value once it is added; none of
    them, and 0, for what is no mask: it is 0 for what is seen, and far below elsewhere."""
    path = list(_made_from(graph, name))
    extents = [_extent(graph, ranges, each) for each, _ in path]
    while path and extents[-1] == (0.0, 0.0):
        path.pop()
        extents.pop()
    if not path:
        return [], 0.0
    low, high = sorted(sign * path[-1][1] * end for end in extents[-1])
    return (path, low) if high == 0 else ([], 0.0)


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
    held_by = {**op.constants, role: name}
    ops = tuple(replace(each, constants=held_by) if each is op else each for each in graph.ops)
    return replace(graph, constants={**graph.constants, name: held}, ops=ops)


def _replaces(graph: Graph, op: Op) -> int:
    """Whether it puts masks in the place of scores: -1 for very low numbers, 1 for very high ones, where the least are
    picked. What else reads them may see how far they are."""
    if not isinstance(op.attributes, Select) or len(op.inputs) != 2:
        return 0
    if _for_softmax(graph, op.outputs[0]):
        return _side(graph, op, -FAR)
    return _side(graph, op, LEFT_OUT) if _is_ranked(graph, op.outputs[0]) else 0


def _side(graph: Graph, op: Op, far: float) -> int:
    """Of a selection with a constant beyond all numbers."""
    if not isinstance(op.attributes, Select) or len(op.inputs) != 2:
        return 0
    (values,) = (graph.constants[name].data for name in op.constants.values())
    return -1 if float(values.max()) <= far else 1 if float(values.min()) >= -LEFT_OUT else 0


def _is_ranked(graph: Graph, name: str) -> bool:
    """Whether only the order of scores counts, as when the largest are picked one after the other."""
    return name not in graph.outputs and all(
        isinstance(op.attributes, Arg)
        or (isinstance(op.attributes, Reduce) and op.attributes.function in ("max", "min"))
        or ((isinstance(op.attributes, MOVES) or _side(graph, op, LEFT_OUT) != 0) and _is_ranked(graph, op.outputs[0]))
        for op in graph.ops
        if name in op.inputs
    )


def _for_softmax(graph: Graph, name: str) -> bool:
    """Whether all that reads these scores or this mask is a softmax or its like or picks the largest, perhaps behind
    moves, factors and other masks."""
    readers = [op for op in graph.ops if name in op.inputs]
    return bool(readers) and name not in graph.outputs and all(_leads_on(graph, op) for op in readers)


def _leads_on(graph: Graph, op: Op) -> bool:
    largest = isinstance(op.attributes, Arg | Reduce) and op.attributes.function == "max"
    passes = isinstance(op.attributes, MOVES) or _joins(op) or _factor(graph, op) is not None
    fades = isinstance(op.attributes, Activation) and op.attributes.function in FADING
    return isinstance(op.attributes, Softmax) or largest or fades or (passes and _for_softmax(graph, op.outputs[0]))


def _adds(op: Op) -> bool:
    return isinstance(op.attributes, Binary) and op.attributes.function == "add"


def _joins(op: Op) -> bool:
    return isinstance(op.attributes, Binary) and op.attributes.function in ("add", "subtract")


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


def _factor_and_summand(graph: Graph, op: Op) -> tuple[Array, Array] | None:
    """What it multiplies by and adds, if that is all it does."""
    if isinstance(op.attributes, Affine):
        return graph.constants[op.constants["scale"]].data, graph.constants[op.constants["shift"]].data
    if isinstance(op.attributes, Binary) and op.attributes.function == "multiply" and len(op.inputs) == 1:
        factor = graph.constants[next(iter(op.constants.values()))].data
        return factor, np.zeros_like(factor)
    return None


def _is_truth(graph: Graph, name: str) -> bool:
    """Whether it is a whole number in the file, 0 or 1 for what is masked or seen."""
    maker = _maker(graph, name)
    return maker is not None and isinstance(maker.attributes, Convert) and graph.tensors[maker.inputs[0]].is_whole


def _extent(graph: Graph, ranges: Ranges, name: str) -> tuple[float, float]:
    """The lowest and the highest value of a mask, whatever the samples show: a selection between constants, a factor of
    truth values; or as the samples show: an input of very low numbers, and what is 0 or far from it. (0, 0) for scores
    that are computed, however low."""
    maker, shown = _maker(graph, name), ranges[name]
    if shown.usual == (0.0, 0.0) or (maker is None and shown.low <= -FAR):
        return shown.low, shown.high
    if maker is None:
        return 0.0, 0.0
    held = [graph.constants[each].data.reshape(-1) for each in maker.constants.values()]
    if isinstance(maker.attributes, Select) and len(maker.inputs) == 1:
        values = np.concatenate(held)
    elif isinstance(maker.attributes, Select) and _replaces(graph, maker) < 0 and (shown.low, shown.high) == (0.0, 0.0):
        values = np.append(held[0], 0.0)
    elif (by := _factor_and_summand(graph, maker)) is not None and _is_truth(graph, maker.inputs[0]):
        values = np.concatenate([by[1].reshape(-1), (by[0] + by[1]).reshape(-1)])
    else:
        return 0.0, 0.0
    return float(values.min()), float(values.max())


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
