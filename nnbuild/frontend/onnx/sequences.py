"""Sequences and optional values, which exist only at compile time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.control import sliced, stacked
from nnbuild.frontend.onnx.data_movement import MOST_COPIES, every, joined, part
from nnbuild.model.graph import Array


def construct(call: Call) -> None:
    call.put([call.item(i) for i in range(call.count)])


def empty(call: Call) -> None:
    call.put([])


def _place(call: Call, index: int, size: int) -> int:
    """The position of an item; by default, the last."""
    place = call.whole_numbers(index)[0] if call.given(index) else -1
    call.expect(-size <= place < size, f"its position {place} lies outside a sequence of {size}.")
    return place % size


def at(call: Call) -> None:
    items = call.sequence(0)
    call.put(items[_place(call, 1, len(items))])


def insert(call: Call) -> None:
    items = list(call.sequence(0))
    place = call.whole_numbers(2)[0] if call.given(2) else len(items)
    call.expect(-len(items) <= place <= len(items), f"its position {place} lies outside a sequence of {len(items)}.")
    items.insert(place if place >= 0 else place + len(items), call.item(1))
    call.put(items)


def erase(call: Call) -> None:
    items = list(call.sequence(0))
    del items[_place(call, 1, len(items))]
    call.put(items)


def length(call: Call) -> None:
    call.put(np.array(len(call.sequence(0)), np.int64))


def concatenated(call: Call) -> None:
    items, axis = call.sequence(0), call.integer("axis", 0)
    if call.integer("new_axis", 0):
        call.put(stacked(call, items, axis))
    else:
        call.put(joined(call, [call.as_value(item) for item in items], axis))


def split(call: Call) -> None:
    x, axis = call.value(0), call.axis(call.integer("axis", 0), len(call.shape(0)))
    size, keep = x.shape[axis], bool(call.integer("keepdims", 1))
    if call.given(1):
        given: Array = call.constant(1)
        each = int(given.reshape(-1)[0])
        call.expect(each > 0 and size <= each * MOST_COPIES, f"its parts have the size {each}.")
        sizes = list(call.whole_numbers(1)) if given.ndim else [min(each, size - b) for b in range(0, size, each)]
    else:
        call.expect(size <= MOST_COPIES, f"it makes {size} tensors.")
        sizes = [1] * size
    call.expect(sum(sizes) == size and min(sizes) > 0, f"its parts {sizes} do not add up to {size}.")
    found, begin = [], 0
    for n in sizes:
        ranges = every(x.shape)
        ranges[axis] = (begin, 1, n)
        found.append(part(call, x, ranges) if keep or call.given(1) else call.as_value(sliced(call, x, axis, begin)))
        begin += n
    call.put([*found])


def optional(call: Call) -> None:
    call.put(call.any(0) if call.given(0) else [])


def has_element(call: Call) -> None:
    found = call.any(0) if call.given(0) else []
    call.put(np.array(not (isinstance(found, list) and not found)))


def element(call: Call) -> None:
    call.put(call.any(0))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceAt": at,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceLength": length,
    "ConcatFromSequence": concatenated,
    "SplitToSequence": split,
    "Optional": optional,
    "OptionalHasElement": has_element,
    "OptionalGetElement": element,
}
