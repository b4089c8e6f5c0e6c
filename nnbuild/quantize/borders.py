"""Ranges that hold the numbers which pads put around them, as a padded tensor keeps its input's format, and those whose
equals are looked for, as masking does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.compare import EQUALITIES, Compare
from nnbuild.ops.pad import Pad
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.rewrite import has_own_format, same_scale

FARTHEST = 100.0
"""Beyond so many times the largest value, a border is a bound, as that of a maximum, and need not be held."""
FARTHEST_MARK = 8.0
"""Beyond that, no sample comes near a number whose equals are looked for, and it would cost steps."""
FEWEST_STEPS, NEARLY = 16, 1e-6
"""A mark of fewer steps stays where it is: the steps would become coarser by more than a sixteenth."""


def with_borders(graph: Graph, ranges: Ranges) -> Ranges:
    found = dict(ranges)
    makers = {name: op for op in graph.ops for name in op.outputs}
    for op in graph.ops:
        held, farthest = _held(graph, op)
        reach = farthest * max(-found[op.inputs[0]].low, found[op.inputs[0]].high) if held else 0.0
        if not held or max(held) > reach or min(held) < -reach:
            continue
        name: str | None = op.inputs[0]
        while name is not None:
            wide = found[name].union(Range(min(held), max(held)))
            found[name] = _on_a_step(wide, held[0]) if farthest == FARTHEST_MARK else wide
            name = _source(makers.get(name))
        if isinstance(op.attributes, Pad):
            found[op.outputs[0]] = replace(found[op.inputs[0]], means=found[op.outputs[0]].means)
    return found


def _on_a_step(values: Range, mark: float) -> Range:
    """A little wider, so that the mark is a whole number of 8-bit steps: halfway between two, a result computed in
    integers may be rounded to the other one."""
    low, high = min(0.0, values.low), max(0.0, values.high)
    steps = abs(mark) * 255 / (high - low) if high > low else 0.0
    return replace(values, high=low + abs(mark) * 255 / floor(steps + NEARLY)) if steps >= FEWEST_STEPS else values


def about_marks(graph: Graph, ranges: Ranges, made: Graph) -> Iterator[str]:
    """Numbers whose equals are looked for where no sample comes near: there are none in integers, as which the graph
    made of this one may hold them."""
    reads = {op.name: op.inputs for op in made.ops}
    for op in graph.ops:
        held, farthest = _held(graph, op)
        if farthest != FARTHEST_MARK or all(
            made.tensors[name].quant is None for name in (op.inputs[0], reads[op.name][0])
        ):
            continue
        values = ranges[op.inputs[0]]
        beyond = [each for each in held if not values.low <= each <= values.high]
        if beyond:
            yield (
                f"layer {op.layer or op.name!r}: it looks for {beyond[0]:.4g}, and no sample comes near: in integers "
                f"its input, {values.low:.3g} to {values.high:.3g}, never equals that; calibrate with samples that "
                "hold it, if any do"
            )


def _held(graph: Graph, op: Op) -> tuple[list[float], float]:
    """The numbers that its input's format must hold, if they are no farther than so many times the largest value."""
    ends = [float(end) for name in op.constants.values() for end in _ends(graph, name)]
    match op.attributes:
        case Pad(value=value, amounts=amounts) if any(map(any, amounts)):
            return ends or [value], FARTHEST
        case Compare(function) if function in EQUALITIES and not graph.tensors[op.inputs[0]].is_whole:
            return ends, FARTHEST_MARK
    return [], 0.0


def _ends(graph: Graph, name: str) -> tuple[float, float]:
    values = graph.constants[name].data
    return float(values.min()), float(values.max())


def _source(op: Op | None) -> str | None:
    """The tensor whose format the operation's result has."""
    return op.inputs[0] if op is not None and has_own_format(op) and same_scale(op.attributes) else None
