"""Features that are picked from an input and compared one by one, as decision trees do.

They have units of their own, so one scale for all of them would blur those of small numbers; and integers would save
nothing, because nothing is multiplied. What looks for missing values, NaN, needs floats, too: no integer is one.
"""

from __future__ import annotations

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.compare import Compare, finds_missing
from nnbuild.ops.gather import Gather
from nnbuild.ops.select import Select
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.from_inputs import PICKS, from_inputs


def compared_features(graph: Graph, float_edge: bool) -> set[str]:
    """The operations that pick features of an input and compare them, all before them, and what picks their limits.
    Inputs that are floats anyway need not be picked from."""
    draft, found = GraphEditor(graph), set[str]()
    for op in graph.ops:
        if isinstance(op.attributes, Compare) and not graph.tensors[op.inputs[0]].is_whole:
            found |= {each.name for each in _by_place(draft, op) or _of_rows(draft, op, float_edge)}
            found |= {each.name for each in _filling(draft, op)}
    return found


def _filling(draft: GraphEditor, op: Op) -> list[Op]:
    """A search for missing values of the inputs, all before it, and what puts others in their place."""
    way = from_inputs(draft, op) if finds_missing(op) else []
    return way and [*way, *(each for each in draft.readers(op.outputs[0]) if isinstance(each.attributes, Select))]


def _by_place(draft: GraphEditor, op: Op) -> list[Op]:
    """A comparison of features at computed places, what picks them and their limits, and all before."""
    makers = [maker for name in op.inputs if (maker := draft.maker(name)) is not None]
    picks = [maker for maker in makers if isinstance(maker.attributes, Gather)]
    ways = [_before(draft, pick.inputs[0]) for pick in picks if len(pick.inputs) == 2]
    found = [way for way in ways if way is not None]
    return [op, *picks, *(each for way in found for each in way)] if found else []


def _before(draft: GraphEditor, name: str) -> list[Op] | None:
    """All before a tensor of floats; None if others than moves and elementwise operations are among them."""
    maker = draft.maker(name)
    if maker is None:
        return None if draft.tensors[name].is_whole else []
    return from_inputs(draft, maker) or None


def _of_rows(draft: GraphEditor, op: Op, whole: bool) -> list[Op]:
    """A comparison of features that are picked at constant places, or of `whole` rows of them, and all before; what has
    several axes, as images, has one unit."""
    way = from_inputs(draft, op)
    rows = all(sum(size > 1 for size in draft.shape(each, each.inputs[0])) <= 1 for each in way)
    return way if rows and (whole or any(isinstance(each.attributes, PICKS) for each in way)) else []
