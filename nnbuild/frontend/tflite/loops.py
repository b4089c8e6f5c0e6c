"""WHILE: loops of a known number of steps, as converters generate them from recurrent layers.

Each step counts, reads rows of what stays the same, and may write a row of a result. A loop over one recurrent cell
becomes that cell's operator (`loop_cells`); the body of any other is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nnbuild.frontend.tflite.records import Model, Operator, Tensor
from nnbuild.model.graph import Array

KIND = "WHILE"
MOST_STEPS = 1024
LARGEST_INDEX = 64
"""Elements of an index that the loop itself computes."""
UNKNOWN_STEPS = "its number of steps depends on values that are computed at run time."
OTHERWISE = "Give the .h5 or .keras file instead, or build the recurrent layer with unroll=True and convert again."


@dataclass(frozen=True, eq=False)
class Loop:
    """By the place of an argument: counters with their values at every step and at last, arguments that are `kept`, and
    rows that each step writes."""

    operator: Operator
    body: Model
    counters: Mapping[int, Sequence[int]]
    kept: frozenset[int]
    rows: Mapping[int, Tensor]

    @property
    def count(self) -> int:
        return min((len(values) - 1 for values in self.counters.values()), default=0)

    @cached_property
    def changed(self) -> Mapping[int, Tensor]:
        """Arguments that are computed anew, with their next values."""
        known = {*self.counters, *self.kept, *self.rows}
        return {place: made for place, made in enumerate(self.body.outputs) if place not in known}

    @cached_property
    def needed(self) -> tuple[Operator, ...]:
        """The body's operators without those that count or only place a row."""
        wanted = {made.index for made in (*self.changed.values(), *self.rows.values())}
        found: list[Operator] = []
        for operator in reversed(self.body.operators):
            if not wanted.isdisjoint(made.index for made in operator.outputs):
                found.append(operator)
                wanted.update(given.index for given in operator.inputs if given is not None)
        return tuple(reversed(found))


def loop_of(operator: Operator, cond: Model, body: Model) -> Loop:
    """The loop of a WHILE, with all that is known of it."""
    places = len(operator.inputs)
    fits = len(body.inputs) == len(cond.inputs) == len(body.outputs) == len(operator.outputs) == places
    if not fits or len(cond.outputs) != 1 or any(given is None for given in operator.inputs):
        raise operator.error("its subgraphs do not take and make what it does.")
    pairs = list(enumerate(zip(body.inputs, body.outputs, strict=True)))
    kept = frozenset(place for place, (before, after) in pairs if before.index == after.index)
    first = {place: value for place, given in enumerate(operator.inputs) if (value := _constant(given)) is not None}
    held = {body.inputs[place].index: first[place] for place in kept & first.keys()}
    limits = {cond.inputs[place].index: first[place] for place in kept & first.keys()}
    makers = {made.index: op for op in body.operators for made in op.outputs}
    counting = [p for p, (b, a) in pairs if p in first.keys() - kept and _counts(makers.get(a.index), b, first[p])]
    values = {place: first[place] for place in counting}
    found: dict[int, list[int]] = {place: [int(value)] for place, value in values.items()}
    rows = {place: row for place, (before, after) in pairs if (row := _row(makers, before, after)) is not None}
    while _holds(cond, limits | {cond.inputs[p].index: v for p, v in values.items()}):
        if len(next(iter(found.values()), range(MOST_STEPS + 1))) > MOST_STEPS:
            raise operator.error(f"it has no known number of steps, or more than {MOST_STEPS}.", OTHERWISE)
        after = _computed(body, held | {body.inputs[place].index: value for place, value in values.items()})
        step = len(next(iter(found.values()))) - 1
        rows = {place: row for place, row in rows.items() if _is_placed(makers, body, place, after, step)}
        if any(body.outputs[place].index not in after for place in counting):
            raise operator.error(UNKNOWN_STEPS, OTHERWISE)
        values = {place: after[body.outputs[place].index] for place in counting}
        for place, value in values.items():
            found[place].append(int(value))
    loop = Loop(operator, body, found, kept, rows)
    if loop.count < 1:
        raise operator.error(UNKNOWN_STEPS, OTHERWISE)
    complete = {place: row for place, row in rows.items() if body.inputs[place].shape[:1] == (loop.count,)}
    return replace(loop, rows=complete)


def _holds(cond: Model, values: Mapping[int, Array]) -> bool:
    found = _computed(cond, values).get(cond.outputs[0].index)
    return found is not None and found.size == 1 and bool(found)


def _constant(tensor: Tensor | None) -> Array | None:
    """Whole numbers that the file holds."""
    if tensor is None or tensor.data is None or tensor.dtype not in ("int32", "int64"):
        return None
    values = tensor.values()
    return values if values.size <= LARGEST_INDEX else None


def _counts(maker: Operator | None, before: Tensor, first: Array) -> bool:
    """Whether a value is this one and a constant."""
    if maker is None or maker.kind != "ADD" or len(maker.inputs) != 2 or before not in maker.inputs:
        return False
    summands = [first, *(_constant(given) for given in maker.inputs if given is not before)]
    return all(held is not None and (held.shape, held.dtype.name) == ((), before.dtype) for held in summands)


def _row(makers: Mapping[int, Operator], before: Tensor, after: Tensor) -> Tensor | None:
    """What a step writes into a result that it otherwise leaves as it is."""
    maker = makers.get(after.index)
    if maker is None or not before.shape or len(maker.inputs) != 3:
        return None
    if maker.kind == "DYNAMIC_UPDATE_SLICE" and maker.inputs[0] is before:
        return maker.inputs[1]
    if maker.kind != "CONCATENATION":
        return None
    ahead, row, behind = maker.inputs
    slices = [makers.get(part.index) if part is not None else None for part in (ahead, behind)]
    placed = all(part is not None and part.kind == "SLICE" and before in part.inputs[:1] for part in slices)
    return row if placed and row is not None and row.shape == (1, *before.shape[1:]) else None


def _is_placed(makers: Mapping[int, Operator], body: Model, place: int, known: Mapping[int, Array], step: int) -> bool:
    """Whether a step writes its row behind those of the steps before it."""
    maker = makers[body.outputs[place].index]

    def at(operator: Operator, index: int) -> list[int] | None:
        given = operator.inputs[index] if index < len(operator.inputs) else None
        values = None if given is None else known.get(given.index, _constant(given))
        return None if values is None else [int(value) for value in values.reshape(-1)]

    rest = [0] * (len(body.inputs[place].shape) - 1)
    if maker.kind == "DYNAMIC_UPDATE_SLICE":
        return at(maker, 2) == [step, *rest]
    ahead, behind = (makers[part.index] for part in (maker.inputs[0], maker.inputs[2]) if part is not None)
    sizes = at(ahead, 2)
    return at(ahead, 1) == [0, *rest] and sizes is not None and sizes[0] == step and at(behind, 1) == [step + 1, *rest]


def _computed(model: Model, values: Mapping[int, Array]) -> dict[int, Array]:
    """Whole numbers that follow from these, by tensor."""
    found = dict(values)
    for operator in model.operators:
        compute = INDEXES.get(operator.kind)
        given = [found.get(t.index, _constant(t)) if t is not None else None for t in operator.inputs]
        if compute is None or any(value is None for value in given):
            continue
        try:
            made = np.asarray(compute(operator, given))
        except (ValueError, TypeError, IndexError):
            continue
        if made.size <= LARGEST_INDEX:
            found[operator.outputs[0].index] = made
    return found


def _of(function: Callable[..., Any]) -> Callable[[Operator, Sequence[Any]], Any]:
    return lambda operator, given: function(*given)


INDEXES: Mapping[str, Callable[[Operator, Sequence[Any]], Any]] = {
    "ADD": _of(np.add),
    "SUB": _of(np.subtract),
    "LESS": _of(np.less),
    "LESS_EQUAL": _of(np.less_equal),
    "GREATER": _of(np.greater),
    "NOT_EQUAL": _of(np.not_equal),
    "LOGICAL_AND": _of(np.logical_and),
    "RESHAPE": lambda operator, given: given[0].reshape(operator.outputs[0].shape),
    "EXPAND_DIMS": lambda operator, given: given[0].reshape(operator.outputs[0].shape),
    "CONCATENATION": lambda operator, given: np.concatenate(given),
    "PACK": lambda operator, given: np.stack(given),
}
"""Operators on indexes of one axis."""
Fresh = Callable[[Tensor, str], Tensor]
"""A copy of a tensor with a number of its own, for a step."""


def unrolled(loop: Loop, fresh: Fresh) -> Iterator[Operator | dict[int, Tensor]]:
    """The operators of all steps; at last, by the number of the loop's outputs, the tensors that hold them."""
    operator, body = loop.operator, loop.body
    read = {given.index: given for each in loop.needed for given in each.inputs if given is not None}
    if any(body.inputs[place].index in read for place in loop.rows):
        raise operator.error("its steps read rows that earlier ones have written.", OTHERWISE)
    values = {place: given for place, given in enumerate(operator.inputs) if given is not None}
    written: dict[int, list[Tensor]] = {place: [] for place in loop.rows}
    made_inside = {made.index for each in loop.needed for made in each.outputs}
    ends = {made.index: made for made in (*loop.changed.values(), *loop.rows.values())}
    outside = {index: fresh(given, "held") for index, given in (read | ends).items() if index not in made_inside}
    named = {made.index: operator.outputs[place] for place, made in loop.changed.items()}
    for step in range(loop.count):
        for place in loop.counters:
            values[place] = fresh(number(body.inputs[place], loop.counters[place][step]), str(step))
        swapped: dict[int, Tensor | None] = {**outside}
        swapped |= {body.inputs[place].index: value for place, value in values.items()}
        for each in loop.needed:
            swapped |= {made.index: fresh(made, str(step)) for made in (*each.outputs, *each.intermediates)}
            if step == loop.count - 1:
                swapped |= {made.index: named[made.index] for made in each.outputs if made.index in named}
            yield within(each, operator.index, swapped)
        for place, row in loop.rows.items():
            written[place].append(swapped[row.index] or row)
        for place, made in loop.changed.items():
            values[place] = swapped[made.index] or made
    for place, values_at in loop.counters.items():
        values[place] = fresh(number(body.inputs[place], values_at[-1]), "end")
    for place, rows in written.items():
        values[place] = operator.outputs[place]
        yield Operator(operator.index, "CONCATENATION", tuple(rows), (operator.outputs[place],))
    yield {made.index: values[place] for place, made in enumerate(operator.outputs)}


def number(like: Tensor, value: int) -> Tensor:
    """A constant in the place of a counter."""
    data = np.frombuffer(np.array(value, like.dtype).tobytes(), np.uint8)
    return replace(like, data=data, shape=(), open=())


def within(inner: Operator, index: int, swapped: Mapping[int, Tensor | None]) -> Operator:
    """An operator of a subgraph, with the caller's tensors and position."""
    if any(t is not None and t.index not in swapped for t in inner.inputs):
        raise inner.error("it reads a tensor that is computed later.")
    outputs = [swapped[t.index] for t in inner.outputs]
    inside = [swapped[t.index] for t in inner.intermediates]
    if None in outputs or None in inside:
        raise inner.error("it writes to a missing input.")
    return replace(
        inner,
        index=index,
        inputs=tuple(None if t is None else swapped[t.index] for t in inner.inputs),
        outputs=tuple(t for t in outputs if t is not None),
        intermediates=tuple(t for t in inside if t is not None),
    )
