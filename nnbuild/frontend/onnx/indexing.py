"""Operators that gather, scatter, sort and accumulate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from math import prod

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.frames import frames_of
from nnbuild.frontend.onnx.arithmetic import chosen, compared, pair, whole
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call, form_of
from nnbuild.frontend.onnx.data_movement import as_shape, joined, part, picked, repeated
from nnbuild.frontend.onnx.data_movement import every as all_of
from nnbuild.frontend.onnx.frames import framed
from nnbuild.model.graph import Array, Shape
from nnbuild.model.views import View, stored
from nnbuild.ops.gather import Gather
from nnbuild.ops.layout import Value, plain
from nnbuild.ops.layout import whole as in_order
from nnbuild.ops.pick import Pick
from nnbuild.ops.top_k import TopK

MOST_WRITTEN = 16
"""Maximum updates along an axis whose places are computed at run time."""

DIFFERENT = "its indices do not match its updates."
REDUCTIONS = {"none": "", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}

MOST_PLACED = 1 << 21
"""Maximum elements of a tensor whose positions are enumerated."""


def gather(call: Call) -> None:
    axis = call.axis(call.integer("axis", 0), len(call.shape(0)))
    size = call.shape(0)[axis]
    indices = call.item(1)
    if isinstance(indices, np.ndarray):
        x = call.value(0)
        flat = [int(i) + size if i < 0 else int(i) for i in indices.reshape(-1)]
        call.expect(bool(flat) and min(flat) >= 0 and max(flat) < size, f"its indices lie outside an axis of {size}.")
        frames = frames_of(np.reshape(flat, indices.shape)) if x.is_number else None
        if frames is not None:
            first, length, step = frames
            x = part(call, x, [(first, 1, n - first) if i == axis else (0, 1, n) for i, n in enumerate(x.shape)])
            call.put(framed(call, x, axis, length, step, len(indices)))
            return
        made = picked(call, x, axis, flat)
        call.put(_reshaped_axis(made, axis, indices.shape, call))
        return
    wrapped = _from_the_end(call, indices, size)
    rows = plain(call, wrapped)
    seen = call.seen(rows.name, rows.shape or (1,))
    shape = (*call.shape(0)[:axis], *rows.shape, *call.shape(0)[axis + 1 :])
    if call.is_constant(0) and axis == 0:
        table, form = _table(call, call.constant(0))
        made_name = call.add(Gather(0), [seen], {"table": table}, form)
        call.done(made_name, stored(shape), call.dtype(0))
        return
    x = plain(call, call.value(0))
    made_name = call.add(Gather(axis), [call.seen(x.name, x.shape or (1,)), seen], form=call.form(x))
    call.done(made_name, stored(shape), x.dtype)


def _table(call: Call, values: Array) -> tuple[Array, Form]:
    from nnbuild.frontend.onnx.call import as_whole

    form = form_of(values.dtype.name)
    return (call.as_floats(values, "table") if form == FLOAT else as_whole(values, form)), form


def _from_the_end(call: Call, indices: Value, size: int) -> Value:
    """Negative indices count from the end."""
    below = compared(call, "less", indices, np.zeros((), np.int64))
    return chosen(call, below, whole(call, "add", indices, np.array(size, np.int64)), indices)


def _reshaped_axis(x: Value, axis: int, shape: Shape, call: Call) -> Value:
    return as_shape(call, x, (*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


def gather_nd(call: Call) -> None:
    """Merges the indexed axes into one, and picks or gathers from it."""
    x, lead, computed = call.value(0), call.integer("batch_dims", 0), call.item(1)
    if isinstance(computed, Value):
        call.put(_gathered_places(call, x, computed, lead))
        return
    indices = call.indices(1)
    depth = indices.shape[-1] if indices.ndim else 0
    shape = x.shape
    call.expect(0 <= lead < indices.ndim and 0 < depth <= len(shape) - lead, "its indices do not match its input.")
    before, named = shape[:lead], shape[lead : lead + depth]
    call.expect(indices.shape[:lead] == before, "its batch axes differ.")
    places = np.where(indices < 0, indices + np.array(named), indices)
    call.expect(bool(((places >= 0) & (places < np.array(named))).all()), "its indices lie outside its input.")
    flat = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), named)
    rows = flat.reshape(prod(before), -1) + np.arange(prod(before))[:, None] * prod(named)
    seen = as_shape(call, x, (prod(before) * prod(named), prod(shape[lead + depth :])))
    made = picked(call, seen, 0, [int(i) for i in rows.reshape(-1)])
    call.put(as_shape(call, made, (*indices.shape[:-1], *shape[lead + depth :])))


def _gathered_places(call: Call, x: Value, indices: Value, lead: int) -> Value:
    """With indices at run time: their numbers in the merged axis, in the rows of their batch."""
    outer, depth, shape = indices.shape[:-1], indices.shape[-1] if indices.shape else 0, x.shape
    fits = 0 <= lead <= len(outer) and 0 < depth <= len(shape) - lead and outer[:lead] == shape[:lead]
    call.expect(fits, "its indices do not match its input.")
    sizes, rest, batch = shape[lead : lead + depth], shape[lead + depth :], prod(shape[:lead])
    places = _merged(call, indices, sizes)
    if batch > 1:
        begins = (np.arange(batch) * prod(sizes)).reshape(*shape[:lead], *[1] * (len(outer) - lead))
        places = whole(call, "add", places, begins)
    table, row = call.plain(as_shape(call, x, (batch * prod(sizes), prod(rest)))), call.plain(places)
    names = [call.seen(table.name, table.shape), call.seen(row.name, (prod(outer),))]
    made = call.add(Gather(0), names, form=call.form(table))
    return as_shape(call, Value(made, stored((prod(outer), prod(rest))), x.dtype), (*outer, *rest))


def _merged(call: Call, indices: Value, sizes: Shape) -> Value:
    """Indices of several axes, at run time, as those of one that merges them."""
    outer, merged = indices.shape[:-1], []
    for axis, size in enumerate(sizes):
        own = as_shape(call, part(call, indices, [*all_of(outer), (axis, 1, 1)]), outer)
        own, stride = _from_the_end(call, own, size), prod(sizes[axis + 1 :])
        merged.append(whole(call, "multiply", own, np.array(stride, np.int64)) if stride > 1 else own)
    return reduce(partial(whole, call, "add"), merged)


def gather_elements(call: Call) -> None:
    x = call.value(0)
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    size, computed = x.shape[axis], call.item(1)
    if isinstance(computed, Value):
        call.put(_computed_elements(call, x, _from_the_end(call, computed, size), axis))
        return
    indices = call.indices(1)
    places = np.where(indices < 0, indices + size, indices)
    fits = indices.ndim == len(x.shape) and bool(((places >= 0) & (places < size)).all())
    fits = fits and all(m <= n for i, (m, n) in enumerate(zip(indices.shape, x.shape, strict=True)) if i != axis)
    call.expect(fits, "its indices do not match its input.")
    grid: list[Array] = list(np.indices(indices.shape))
    grid[axis] = places
    flat = np.ravel_multi_index(tuple(grid), x.shape).reshape(-1)
    call.put(_elements(call, x, flat, indices.shape))


def _computed_elements(call: Call, x: Value, indices: Value, axis: int) -> Value:
    """Gathers with run-time indices from the flattened tensor: the index applies to its axis, the other axes keep
    their position."""
    shape = indices.shape
    fits = len(shape) == len(x.shape) and all(
        m <= n for i, (m, n) in enumerate(zip(shape, x.shape, strict=True)) if i != axis
    )
    call.expect(fits, "its indices do not match its input.")
    call.within_tables(prod(shape))
    strides = [prod(x.shape[i + 1 :]) for i in range(len(shape))]
    others = [np.arange(n) * strides[i] if i != axis else np.zeros(n, np.int64) for i, n in enumerate(shape)]
    begins = sum(np.meshgrid(*others, indexing="ij"), np.zeros((), np.int64))
    along = whole(call, "multiply", indices, np.array(strides[axis], np.int64)) if strides[axis] > 1 else indices
    places = plain(call, whole(call, "add", along, np.asarray(begins)))
    row = plain(call, x)
    names = [call.seen(row.name, (prod(x.shape),)), call.seen(places.name, (prod(shape),))]
    return Value(call.add(Gather(0), names, form=call.form(row)), stored(shape), x.dtype)


def _elements(call: Call, x: Value, flat: Array, shape: Shape) -> Value:
    """The elements at these positions of the flattened tensor in ONNX's order."""
    x = plain(call, x)
    name = call.seen(x.name, (prod(x.shape),))
    made = call.add(Pick((tuple(int(i) for i in flat),)), [name], form=call.form(x))
    return replace(x, name=made, view=stored(shape))


def scatter_elements(call: Call) -> None:
    x, computed = call.value(0), call.item(1)
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    size = x.shape[axis]
    if isinstance(computed, Value):
        call.expect(computed.shape == call.shape(2) and len(computed.shape) == len(x.shape), DIFFERENT)
        call.put(_written(call, x, _from_the_end(call, computed, size), call.value(2), axis))
        return
    indices = call.indices(1)
    places = np.where(indices < 0, indices + size, indices)
    call.expect(
        bool(((places >= 0) & (places < size)).all()) and indices.ndim == len(x.shape),
        DIFFERENT,
    )
    grid: list[Array] = list(np.indices(indices.shape))
    grid[axis] = places
    flat = np.ravel_multi_index(tuple(grid), x.shape).reshape(-1)
    call.put(_scattered(call, x, flat, call.value(2), (prod(indices.shape),)))


def _written(call: Call, x: Value, indices: Value, updates: Value, axis: int) -> Value:
    """With indices at run time, for each place of the other axes or for all of them: each update, one after the
    other, in all places that it could go to."""
    function, shape, count = REDUCTIONS.get(call.text("reduction", "none")), x.shape, updates.shape[axis]
    call.expect(function is not None, f"its reduction is {call.text('reduction')!r}.")
    if count > MOST_WRITTEN or updates.shape != tuple(count if i == axis else n for i, n in enumerate(shape)):
        what = f"it writes {list(updates.shape)} values into {list(shape)} at places computed at run time"
        raise call.unsupported(what)
    call.within_tables(shape[axis])
    numbers = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])

    def one(values: Value, index: int) -> Value:
        return part(call, values, [(index, 1, 1) if i == axis else (0, 1, n) for i, n in enumerate(values.shape)])

    for index in range(count):
        hit, new = compared(call, "equal", one(indices, index), numbers), repeated(call, one(updates, index), shape)
        x = chosen(call, hit, pair(call, function, x, new) if function else new, x)
    return x


def _written_rows(call: Call, x: Value, indices: Value, updates: Value) -> Value:
    """With indices at run time: rows of the merged axes."""
    outer, depth, shape = indices.shape[:-1], indices.shape[-1] if indices.shape else 0, x.shape
    call.expect(0 < depth <= len(shape) and updates.shape == (*outer, *shape[depth:]), DIFFERENT)
    rows, rest, count = prod(shape[:depth]), prod(shape[depth:]), prod(outer)
    places = as_shape(call, _merged(call, indices, shape[:depth]), (count, 1))
    x, updates = as_shape(call, x, (rows, rest)), as_shape(call, updates, (count, rest))
    return as_shape(call, _written(call, x, places, updates, 0), shape)


def scatter_nd(call: Call) -> None:
    x, computed = call.value(0), call.item(1)
    if isinstance(computed, Value):
        call.put(_written_rows(call, x, computed, call.value(2)))
        return
    indices = call.indices(1)
    depth = indices.shape[-1]
    named, rest = x.shape[:depth], x.shape[depth:]
    places = np.where(indices < 0, indices + np.array(named), indices)
    call.expect(bool(((places >= 0) & (places < np.array(named))).all()), "its indices lie outside its input.")
    rows = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), named).reshape(-1)
    call.within_tables(rows.size * prod(rest))
    flat = (rows[:, None] * prod(rest) + np.arange(prod(rest))).reshape(-1)
    call.put(_scattered(call, x, flat, call.value(2), (flat.size,)))


def _scattered(call: Call, x: Value, flat: Array, updates: Value, seen: Shape) -> Value:
    """x with the updates at these positions, one round per repeated position."""
    if prod(x.shape) > MOST_PLACED:
        raise call.unsupported(f"it writes into {prod(x.shape):,} values")
    function = REDUCTIONS.get(call.text("reduction", "none"))
    if function is None:
        raise call.unsupported(f"its reduction is {call.text('reduction')!r}")
    shape, size = x.shape, prod(x.shape)
    x = as_shape(call, plain(call, call.as_real(x) if x.is_number else x), (size,))
    updates = as_shape(call, plain(call, call.as_real(updates) if updates.is_number else updates), seen)
    left = np.arange(flat.size)
    rounds = 0
    while left.size:
        call.expect(rounds < 64, "it writes one element more than 64 times.")
        rounds += 1
        _, first = np.unique(flat[left][::-1] if not function else flat[left], return_index=True)
        now = left[left.size - 1 - first] if not function else left[first]
        source = np.arange(size)
        written = np.zeros(size, bool)
        written[flat[now]] = True
        source[flat[now]] = size + now
        both = joined(call, [x, updates], 0)
        new = _elements(call, both, source, (size,))
        if function:
            changed = pair(call, function, x, new)
            x = changed if written.all() else chosen(call, written, changed, x)
            left = np.setdiff1d(left, now)
        else:
            x, left = new, left[:0]
    return as_shape(call, x, shape)


def one_hot(call: Call) -> None:
    depth, values = call.whole_numbers(1)[0], call.constant(2)
    call.expect(0 < depth < 2**16 and values.size == 2, f"its depth is {depth}.")
    indices = call.value(0)
    call.within_tables(prod(indices.shape) * depth)
    if indices.is_number:
        indices = call.converted(call.as_real(indices), INT32, "int64")
    rank = len(indices.shape) + 1
    axis = call.axis(call.integer("axis", -1), rank)
    axes = list(indices.view.axes)
    axes.insert(axis, ())
    column = replace(_from_the_end(call, indices, depth), view=View(indices.view.atoms, tuple(axes)))
    numbers = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    hit = compared(call, "equal", column, numbers)
    call.put(chosen(call, call.plain(hit), values[1], call.as_value(np.broadcast_to(values[0], hit.shape).copy())))


def top_k(call: Call) -> None:
    """The smallest are the largest of the negated numbers: of integers of the complements, which all have one."""
    x, count = call.value(0), call.whole_numbers(1)[0] if call.given(1) else call.integer("k", 1)
    x = call.as_real(x) if x.is_number else x
    axis, largest = call.axis(call.integer("axis", -1), len(x.shape)), bool(call.integer("largest", 1))
    call.expect(0 < count <= x.shape[axis], f"it asks for {count} of {x.shape[axis]}.")

    def turned(value: Value) -> Value:
        if largest:
            return value
        return (
            call.activated(value, "negative") if x.is_number else whole(call, "subtract", np.array(-1, np.int64), value)
        )

    order = [*(i for i in range(len(x.shape)) if i != axis), axis]
    rows, _ = in_order(call, turned(x), order)
    shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
    values, places = call.adds(TopK(count), [rows.name], [call.form(rows), INT32])
    call.put(turned(call.of(values, shape, order, x.dtype)))
    call.put(call.of(places, shape, order, "int64"), 1)


def cumulative(function: str, call: Call) -> None:
    """Running sums or products by doubling steps: each adds the element at twice the previous distance."""
    x, axis = call.value(0), call.axis(call.whole_numbers(1)[0], len(call.shape(0)))
    x = call.as_real(x) if x.is_number else x
    size = x.shape[axis]
    call.within_tables(prod(x.shape) // size)
    backwards, exclusive = bool(call.integer("reverse", 0)), bool(call.integer("exclusive", 0))
    neutral = np.full(
        [1 if i == axis else n for i, n in enumerate(x.shape)],
        0 if function == "add" else 1,
        np.float32 if x.is_number else x.dtype,
    )

    def piece(value: Value, begin: int, count: int) -> Value:
        ranges = all_of(value.shape)
        ranges[axis] = (begin, 1, count)
        return part(call, value, ranges)

    if backwards:
        x = picked(call, x, axis, list(reversed(range(size))))
    if exclusive:
        rest = [call.as_value(neutral)] + ([piece(x, 0, size - 1)] if size > 1 else [])
        x = joined(call, rest, axis)
    step = 1
    while step < size:
        added = pair(call, function, piece(x, step, size - step), piece(x, 0, size - step))
        x = joined(call, [piece(x, 0, step), added], axis)
        step *= 2
    if backwards:
        x = picked(call, x, axis, list(reversed(range(size))))
    call.put(x)


def compress(call: Call) -> None:
    x, kept = call.value(0), call.constant(1).reshape(-1)
    if not call.has("axis"):
        x = as_shape(call, x, (prod(x.shape),))
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    places = [int(i) for i in np.flatnonzero(kept) if i < x.shape[axis]]
    call.expect(bool(places), "its output is empty.")
    call.put(picked(call, x, axis, places))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "Gather": gather,
    "GatherND": gather_nd,
    "GatherElements": gather_elements,
    "ScatterElements": scatter_elements,
    "Scatter": scatter_elements,
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "TopK": top_k,
    "CumSum": partial(cumulative, "add"),
    "CumProd": partial(cumulative, "multiply"),
    "Compress": compress,
}
