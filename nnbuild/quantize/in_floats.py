"""What integers compute too coarsely: it is computed in floats, and a note says why."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nnbuild.model.graph import Graph, Op, Tensor
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.activation import Activation
from nnbuild.ops.activation_rules import Table, rule_of
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.detections import Detections
from nnbuild.ops.functions import apply
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.calibrate import FAR, Range, Ranges
from nnbuild.quantize.formats import activation_format, fixed_format
from nnbuild.quantize.unequal_outputs import FEWEST_STEPS, unequal_outputs, whole_outputs

BLURRED = 1 / 512
"""The largest error of a table, as a share of the range of its results."""
APART = 7
"""Inputs between two that are tried."""
POLES = ("log", "rsqrt")
"""Functions without a bound at zero."""
NEAREST_STEPS = 4
"""From zero to what is divided by: with fewer it may be rounded by more than an eighth."""
LEAST_QUOTIENT = {"int8": 1 / 32, "int16": 1 / 1024}
"""A step of what is divided, divided by the smallest divisor, as a share of the largest quotient."""
SEEN_STEPS = {"int8": 32, "int16": 512}
"""Of values that a mask is put beside."""
NEAR_SCORES = 1 / 16
"""Scores that a softmax alone reads may be rounded to steps of that: no share changes by more than a thirtieth."""
FLOATS_ALONE = (Detections,)
"""What has no integer form."""
BEFORE = (Activation, Affine, Binary, Reduce, Repeat, Reshape)
"""What is computed in floats with the only operations that read it: integers would lose the epsilon that is added
before a logarithm."""


def in_floats(
    graph: Graph, ranges: Ranges, forms: dict[str, str], float_edge: bool
) -> tuple[frozenset[str], list[str]]:
    """The operations that integers compute too coarsely, and the notes about them."""
    draft, notes = GraphEditor(graph), list[str]()
    coarse, masks = set[str](), set[str]()
    for op in graph.ops:
        form = forms[op.name]
        if form == "float":
            continue
        given, made = _not_finite(op.inputs, ranges), _not_finite(op.outputs, ranges)
        if given or made:
            coarse.add(op.name)
            if given:
                continue
            cause = "some of its results are not finite, as a logarithm of a negative number, which floats alone hold"
        elif pole := _pole(draft, op, ranges, form, float_edge):
            maker = draft.maker(pole)
            coarse |= {op.name} if maker is None else {op.name, maker.name}
            cause = f"what it divides by or takes, {_span(ranges[pole])}, comes too near 0 for steps of {form}"
        elif form == "int16" and _is_steep(op, ranges[op.inputs[0]], ranges[op.outputs[0]]):
            coarse.add(op.name)
            cause = f"its function changes too fast for 16 bits over inputs from {_span(ranges[op.inputs[0]])}"
        elif _has_few_steps(op, ranges[op.outputs[0]], form):
            coarse.add(op.name)
            cause = f"its results, {_span(ranges[op.outputs[0]])}, are less than {FEWEST_STEPS[form]} steps of {form}"
        elif (seen := _beside_mask(draft, op, ranges, form)) and not graph.tensors[op.outputs[0]].is_whole:
            masks.add(op.name)
            cause = f"no format of {form} holds both {_span(seen)} and the mask beside it"
        else:
            continue
        notes.append(f"layer {op.layer or op.name!r}: {cause}, and it is computed in floats")
    found = with_producers(draft, coarse) | _with_readers(draft, ranges, masks) | whole_outputs(graph, draft)
    found |= {op.name for op in graph.ops if isinstance(op.attributes, FLOATS_ALONE)}
    for op, around, cause in unequal_outputs(graph, draft, ranges, forms | dict.fromkeys(found, "float")):
        found |= around
        notes.append(f"layer {op.layer or op.name!r}: {cause}, and it is computed in floats")
    return frozenset(found), notes


def _not_finite(names: tuple[str, ...], ranges: Ranges) -> bool:
    return any(name in ranges and not ranges[name].finite for name in names)


def _span(values: Range) -> str:
    return f"{values.low:.3g} to {values.high:.3g}"


def with_producers(draft: GraphEditor, coarse: Collection[str]) -> set[str]:
    """With the elementwise operations and sums before them that nothing else reads."""
    found = set(coarse)
    for op in reversed(draft.ops.values()):
        readers = draft.readers(op.outputs[0])
        alone = op.outputs[0] not in draft.pinned and readers and all(reader.name in found for reader in readers)
        if alone and isinstance(op.attributes, BEFORE):
            found.add(op.name)
    return found


def _with_readers(draft: GraphEditor, ranges: Ranges, masks: Collection[str]) -> set[str]:
    """With all that reads a mask among other values, as far as it goes."""
    found, deep = set(masks), {draft.ops[name].outputs[0]: 1.0 for name in masks}
    for op in draft.ops.values():
        if given := deep.keys() & set(op.inputs):
            found.add(op.name)
            reach = max(_largest(ranges[name]) for name in given)
            deep |= {name: 1.0 for name in op.outputs if name in ranges and _largest(ranges[name]) >= reach / 2}
    return found


def _pole(draft: GraphEditor, op: Op, ranges: Ranges, form: str, float_edge: bool) -> str | None:
    """What it divides by, or takes the logarithm of, if that is so near zero that rounding counts. An input that comes
    in integers has been rounded already."""
    match op.attributes:
        case Binary("divide"):
            dividend, divisor = operands(op.inputs, op.constants)
        case Activation(function) if function in POLES:
            dividend, divisor = "", op.inputs[0]
        case _:
            return None
    if divisor not in op.inputs or draft.tensors[divisor].is_whole:
        return None
    if divisor in draft.external and not float_edge:
        return None
    nearest = max(ranges[divisor].low, -ranges[divisor].high, 0.0)
    if nearest < NEAREST_STEPS * _step(ranges[divisor], form):
        return divisor
    least = LEAST_QUOTIENT[form] * nearest * _largest(ranges[op.outputs[0]])
    return divisor if dividend in op.inputs and _step(ranges[dividend], form) > least else None


def _step(values: Range, form: str) -> float:
    return activation_format(values, form).scale


def _has_few_steps(op: Op, results: Range, form: str) -> bool:
    fixed = fixed_format(op.attributes, form)
    return fixed is not None and 0 < _largest(results) < FEWEST_STEPS[form] * fixed.scale


def _beside_mask(draft: GraphEditor, op: Op, ranges: Ranges, form: str) -> Range | None:
    """The values for which a mask in the same tensor leaves too few steps."""
    match op.attributes:
        case Select():
            values = [ranges[name] for name in op.inputs[1:]]
        case Binary("add" | "subtract") if len(op.inputs) == 2:
            values = [ranges[name] for name in op.inputs]
        case _:
            return None
    others = [each for each in values if not _is_mask(each)]
    if len(others) == len(values) and not op.constants:
        return None
    step = _step(ranges[op.outputs[0]], form)
    if step <= NEAR_SCORES and _for_softmax(draft, op.outputs[0]):
        return None
    least = SEEN_STEPS[form] * step
    return next((each for each in others if 0 < each.high - each.low < least), None)


def _for_softmax(draft: GraphEditor, name: str) -> bool:
    """Whether nothing but softmaxes reads it, perhaps moved."""
    readers = draft.readers(name)
    return bool(readers) and name not in draft.pinned and all(_is_softmax(draft, reader) for reader in readers)


def _is_softmax(draft: GraphEditor, op: Op) -> bool:
    moved = isinstance(op.attributes, Reshape | Transpose)
    return isinstance(op.attributes, Softmax) or (moved and _for_softmax(draft, op.outputs[0]))


def _is_mask(values: Range) -> bool:
    """Whether it is 0 or far from it, or the same everywhere."""
    return values.usual == (0.0, 0.0) or (values.low == values.high and abs(values.low) >= FAR)


def _largest(values: Range) -> float:
    return max(-values.low, values.high)


def _is_steep(op: Op, given: Range, found: Range) -> bool:
    """Whether 16-bit integers compute the operation too coarsely; `given` and `found` are its ranges."""
    if not isinstance(op.attributes, Activation):
        return False
    function, parameters = op.attributes.function, op.attributes.parameters
    made = fixed_format(op.attributes, "int16") or activation_format(found, "int16")
    ends = [Tensor("x", (1,), "int16", activation_format(given, "int16")), Tensor("y", (1,), "int16", made)]
    steps = [tensor.quant.scale for tensor in ends if tensor.quant is not None]
    rule = rule_of(function, parameters, *ends)
    if not isinstance(rule, Table):
        return False
    inputs = np.arange(INT16[0], INT16[1] + 1, APART)
    inputs = inputs[(inputs * steps[0] >= given.low) & (inputs * steps[0] <= given.high)]
    if not len(inputs):
        return False
    with np.errstate(all="ignore"):
        exact = apply(function, parameters, inputs * steps[0])
    errors = np.abs(rule.apply(inputs) * steps[1] - np.clip(exact, found.low, found.high))
    return bool(np.nanmax(errors) > BLURRED * (found.high - found.low))
